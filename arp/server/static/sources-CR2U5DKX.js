import{D as e,K as t,Q as n,R as r,W as i,X as a,q as o,vt as s,y as c}from"./page-CDd6qxm-.js";import{T as l,b as u,c as d,x as f}from"./drawing-COOceEeT.js";var p=8,m=class extends t{static properties={number:{attribute:!1},context:{attribute:!1},isShown:{state:!0}};#e=c(`cited`);#t=new s(this);constructor(){super(),this.number=0,this.context=n,this.isShown=!1,this.addEventListener(`pointerenter`,({pointerType:e})=>e!==`touch`&&this.#i()),this.addEventListener(`pointerleave`,()=>!this.contains(document.activeElement)&&this.#a()),this.addEventListener(`focusin`,()=>this.#i()),this.addEventListener(`focusout`,()=>!this.matches(`:hover`)&&this.#a())}createRenderRoot(){return this.replaceChildren(),this}disconnectedCallback(){super.disconnectedCallback(),this.#a()}willUpdate(){let{citations:e}=this.context;this.#t.observe(...e?[e]:[])}render(){let{citations:e,t}=this.context,n=e?.get()[this.number-1];if(!e||!n)return a`[${this.number}]`;let r=`${e.id}-${this.number}`,i=t(`sourceNumber`,{number:this.number,title:h(n)});return a`<a
        href="#${r}"
        aria-label=${i}
        aria-describedby=${this.isShown?this.#e:o}
        @click=${e=>this.#s(e,r)}
        >[${this.number}]</a
      >${this.isShown?this.#n(n):o}`}#n(e){let t=f(e.url,this.context)?.host??``;return a`<span class="arp-cite-card" id=${this.#e} role="tooltip" popover="manual"
      ><span class="arp-cite-inner"
        ><strong dir="auto">${h(e)}</strong>${t===``||e.url===``?o:a`<span class="arp-host" dir="ltr">${t}</span>`}${e.excerpt===``?o:a`<span class="arp-excerpt" dir="auto">${e.excerpt}</span>`}</span
      ></span
    >`}updated(){let e=this.querySelector(`[popover]`);e!==null&&(e.matches(`:popover-open`)||e.showPopover(),this.#r())}#r=()=>{let e=this.querySelector(`[popover]`),t=this.querySelector(`a`);if(e===null||t===null)return;let n=t.getBoundingClientRect(),{width:r,height:i}=e.getBoundingClientRect(),a=n.bottom+i<innerHeight||n.top<i;e.style.left=`${Math.max(p,Math.min((n.left+n.right-r)/2,innerWidth-r-p))}px`,e.style.top=`${a?n.bottom:n.top-i}px`};#i(){this.isShown||this.context.citations?.get()[this.number-1]===void 0||(this.isShown=!0,document.addEventListener(`keydown`,this.#o,!0),document.addEventListener(`scroll`,this.#r,{capture:!0,passive:!0}))}#a(){this.isShown=!1,document.removeEventListener(`keydown`,this.#o,!0),document.removeEventListener(`scroll`,this.#r,!0)}#o=e=>{e.key===`Escape`&&(e.preventDefault(),e.stopPropagation(),this.#a())};#s(e,t){if(e.button!==0||e.metaKey||e.ctrlKey||e.shiftKey||e.altKey)return;let n=this.getRootNode().getElementById(t);n!==null&&(e.preventDefault(),this.#a(),n.scrollIntoView({block:`nearest`}),n.focus())}};function h({title:t,url:n}){return e(t||n)}r(`arp-cite`,m);var g=`.arp-cite-card{width:max-content;max-width:min(22rem,100vw - 1rem);max-height:60vh;color:inherit;white-space:normal;background:0 0;border:0;margin:0;padding:.375rem 0;font-size:.875rem;line-height:1.5;position:fixed;inset:auto;overflow:auto}.arp-cite-inner{border:1px solid var(--_arp-edge);border-radius:var(--_arp-small);background:var(--_arp-panel);color:var(--_arp-ink);overflow-wrap:anywhere;gap:.25rem;padding:.625rem .875rem;display:grid}.arp-excerpt{white-space:pre-line;color:var(--_arp-soft);display:block}.arp-sources ol{padding:0;gap:.5rem;margin:.5rem 0 0;padding-inline-start:1.75rem;list-style:decimal;display:grid}.arp-sources li{overflow-wrap:anywhere}.arp-sources li::marker{color:var(--_arp-soft);font-variant-numeric:tabular-nums}.arp-sources :is(li:focus,li:target){outline:2px solid var(--_arp-accent-ink);outline-offset:4px;border-radius:2px}.arp-sources cite{font-style:normal}@media print{.arp-sources a[target]:after{content:" (" attr(href) ")";overflow-wrap:anywhere;font-size:.875em}.arp-sources a[target]+.arp-host{display:none}}`,_=class extends d{#e=c(`sources`);draw(e){let t=this.context.citations?.id??this.#e;return a`<section class="arp-card arp-sources" role="group" aria-labelledby=${this.#e}>
      <h3 class="arp-title" id=${this.#e}>${this.t(`sources`)}</h3>
      <ol>
        ${l(e).map((e,n)=>a`<li id="${t}-${n+1}" tabindex="-1" dir="auto">
            ${this.#t(e)}${e.excerpt===``?o:a`<p class="arp-note arp-excerpt" dir="auto">${e.excerpt}</p>`}
          </li>`)}
      </ol>
    </section>`}#t(e){let t=e.url===``?null:f(e.url,this.context);if(t===null)return a`<cite>${h(e)}</cite>`;let n=u(t);return a`<a
        class="arp-link"
        href=${t.href}
        target=${n?`_blank`:o}
        rel="noopener noreferrer nofollow"
        title=${n?this.t(`opensHost`,{host:t.host}):o}
        ><cite>${h(e)}</cite></a
      >${t.host===``?o:a` <bdi class="arp-host" dir="ltr">(${t.host})</bdi>`}`}};i(g),r(`arp-sources`,_);export{_ as ArpSources};