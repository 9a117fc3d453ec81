import{H as e,K as t,N as n,P as r,R as i,U as a,Y as o,k as s,x as c}from"./page-CrbkTPZc.js";import{_ as l,v as u,y as d}from"./drawing-CplE_M9J.js";var f=o(),p=8,m=class extends e{static properties={number:{attribute:!1},context:{attribute:!1},isShown:{state:!0}};#e=c(`cited`);#t=null;constructor(){super(),this.number=0,this.context=f,this.isShown=!1,this.addEventListener(`pointerenter`,({pointerType:e})=>e!==`touch`&&this.#i()),this.addEventListener(`pointerleave`,()=>!this.contains(document.activeElement)&&this.#a()),this.addEventListener(`focusin`,()=>this.#i()),this.addEventListener(`focusout`,()=>!this.matches(`:hover`)&&this.#a())}createRenderRoot(){return this.replaceChildren(),this}connectedCallback(){super.connectedCallback(),this.#t=this.context.citations?.subscribe(()=>this.requestUpdate())??null,this.requestUpdate()}disconnectedCallback(){super.disconnectedCallback(),this.#t?.(),this.#a()}render(){let{citations:e,t:n}=this.context,r=e?.get()[this.number-1];if(!e||!r)return t`[${this.number}]`;let i=`${e.id}-${this.number}`,o=n(`sourceNumber`,{number:this.number,title:h(r)});return t`<a
        href="#${i}"
        aria-label=${o}
        aria-describedby=${this.isShown?this.#e:a}
        @click=${e=>this.#s(e,i)}
        >[${this.number}]</a
      >${this.isShown?this.#n(r):a}`}#n(e){let n=u(e.url)?.host??``;return t`<span class="arp-cite-card" id=${this.#e} role="tooltip" popover="manual"
      ><span class="arp-cite-inner"
        ><strong dir="auto">${h(e)}</strong>${n===``||e.url===``?a:t`<span class="arp-host" dir="ltr">${n}</span>`}${e.excerpt===``?a:t`<span class="arp-excerpt" dir="auto">${e.excerpt}</span>`}</span
      ></span
    >`}updated(){let e=this.querySelector(`[popover]`);e!==null&&(e.matches(`:popover-open`)||e.showPopover(),this.#r())}#r=()=>{let e=this.querySelector(`[popover]`),t=this.querySelector(`a`);if(e===null||t===null)return;let n=t.getBoundingClientRect(),{width:r,height:i}=e.getBoundingClientRect(),a=n.bottom+i<innerHeight||n.top<i;e.style.left=`${Math.max(p,Math.min((n.left+n.right-r)/2,innerWidth-r-p))}px`,e.style.top=`${a?n.bottom:n.top-i}px`};#i(){this.isShown||this.context.citations?.get()[this.number-1]===void 0||(this.isShown=!0,document.addEventListener(`keydown`,this.#o,!0),document.addEventListener(`scroll`,this.#r,{capture:!0,passive:!0}))}#a(){this.isShown=!1,document.removeEventListener(`keydown`,this.#o,!0),document.removeEventListener(`scroll`,this.#r,!0)}#o=e=>{e.key===`Escape`&&(e.preventDefault(),e.stopPropagation(),this.#a())};#s(e,t){if(e.button!==0||e.metaKey||e.ctrlKey||e.shiftKey||e.altKey)return;let n=this.getRootNode().getElementById(t);n!==null&&(e.preventDefault(),this.#a(),n.scrollIntoView({block:`nearest`}),n.focus())}};function h({title:e,url:t}){return s(e||t)}r(`arp-cite`,m);var g=`.arp-cite-card{width:max-content;max-width:min(22rem,100vw - 1rem);max-height:60vh;color:inherit;white-space:normal;background:0 0;border:0;margin:0;padding:.375rem 0;font-size:.875rem;line-height:1.5;position:fixed;inset:auto;overflow:auto}.arp-cite-inner{border:1px solid var(--_arp-edge);border-radius:var(--_arp-small);background:var(--_arp-panel);color:var(--_arp-ink);overflow-wrap:anywhere;gap:.25rem;padding:.625rem .875rem;display:grid}.arp-excerpt{white-space:pre-line;color:var(--_arp-soft);display:block}.arp-sources ol{padding:0;gap:.5rem;margin:.5rem 0 0;padding-inline-start:1.75rem;list-style:decimal;display:grid}.arp-sources li{overflow-wrap:anywhere}.arp-sources li::marker{color:var(--_arp-soft);font-variant-numeric:tabular-nums}.arp-sources :is(li:focus,li:target){outline:2px solid var(--_arp-accent-ink);outline-offset:4px;border-radius:2px}.arp-sources cite{font-style:normal}@media print{.arp-sources a[target]:after{content:" (" attr(href) ")";overflow-wrap:anywhere;font-size:.875em}.arp-sources a[target]+.arp-host{display:none}}`,_=class extends n{#e=c(`sources`);draw(e){let n=this.context.citations?.id??this.#e;return t`<section class="arp-card arp-sources" role="group" aria-labelledby=${this.#e}>
      <h3 class="arp-title" id=${this.#e}>${this.t(`sources`)}</h3>
      <ol>
        ${d(e).map((e,r)=>t`<li id="${n}-${r+1}" tabindex="-1" dir="auto">
            ${this.#t(e)}${e.excerpt===``?a:t`<p class="arp-note arp-excerpt" dir="auto">${e.excerpt}</p>`}
          </li>`)}
      </ol>
    </section>`}#t(e){let n=e.url===``?null:u(e.url);if(n===null)return t`<cite>${h(e)}</cite>`;let r=l(n);return t`<a
        class="arp-link"
        href=${n.href}
        target=${r?`_blank`:a}
        rel="noopener noreferrer nofollow"
        title=${r?this.t(`opensHost`,{host:n.host}):a}
        ><cite>${h(e)}</cite></a
      >${n.host===``?a:t` <bdi class="arp-host" dir="ltr">(${n.host})</bdi>`}`}};i(g),r(`arp-sources`,_);export{_ as ArpSources};