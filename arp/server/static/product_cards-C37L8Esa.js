import{C as e,K as t,N as n,P as r,R as i,U as a,V as o,g as s,x as c}from"./page-i41qyAIo.js";import{_ as l,v as u}from"./drawing-B3lH1ffd.js";var d=`.arp-products{gap:calc(3 * var(--_arp-s));display:grid}.arp-products>header{flex-wrap:wrap;justify-content:space-between;align-items:center;gap:.5rem 1rem;display:flex}.arp-product-list{gap:calc(3 * var(--_arp-s));grid-template-columns:repeat(auto-fill,minmax(min(13.5rem,100%),1fr));margin:0;padding:0;list-style:none;display:grid}.arp-product{flex-direction:column;padding:0;display:flex;overflow:hidden}.arp-product>arp-picture.arp img{aspect-ratio:4/3;object-fit:cover;border-radius:0;width:100%}.arp-product .arp-picture-place{aspect-ratio:4/3;border:0;border-block-end:1px solid var(--_arp-line);text-align:center;border-radius:0;flex-direction:column;justify-content:center}.arp-product-text{padding:calc(3.5 * var(--_arp-s)) calc(4 * var(--_arp-s));flex-direction:column;flex:1;align-items:flex-start;gap:.2rem;display:flex}.arp-badge{background:var(--_arp-tint);color:var(--_arp-accent-ink);border-radius:1rem;margin-block-end:.2rem;padding:.05rem .55rem;font-size:.75rem;font-weight:600}.arp-price{font-variant-numeric:tabular-nums;margin:0;margin-block-start:auto;padding-block-start:.4rem;font-weight:600}.arp-product .arp-host{align-items:center;gap:.3rem;font-size:.8125rem;display:flex}`,f=7,p=class extends n{static properties={wanted:{state:!0}};#e=s(`products`);constructor(){super(),this.wanted=``}draw({title:n,cards:r}){let{t:i}=this,s=c(r),l=this.wanted.toLocaleLowerCase(i.locale).split(/\s+/).filter(Boolean),u=s.filter(t=>{let n=[t.name,t.brand,t.description,t.badge,t.price].map(e).join(` `).toLocaleLowerCase(i.locale);return l.every(e=>n.includes(e))}),d=e(n);return t`<section class="arp-products" role="group" aria-labelledby=${d?this.#e:a} aria-label=${d?a:i(`products`)}>
      ${d||s.length>=f?t`<header>
        ${d?t`<h3 class="arp-title" id=${this.#e} dir="auto">${d}</h3>`:a}
        ${s.length>=f?t`<label class="arp-search">${o(`search`)}<span class="arp-hidden">${i(`filter`)}</span>
          <input class="arp-input" type="search" dir="auto" placeholder=${i(`filter`)} .value=${this.wanted} @input=${this.#t} /></label>`:a}
      </header>`:a}
      <p class="arp-hidden" role="status">${this.wanted===``?a:i(`found`,{count:u.length,all:s.length})}</p>
      <ul class="arp-product-list">${u.map(e=>this.#n(e))}</ul>
    </section>`}#t=e=>{this.wanted=e.target.value};#n({name:n,price:r,image:i,brand:s,description:c,badge:d,url:f}){let{t:p}=this,m=u(e(f),this.context),h=m!==null&&l(m),g=e(n),_=typeof r==`number`?p.number(r,{minimumFractionDigits:r%1==0?0:2}):e(r);return t`<li class="arp-card arp-product">
      ${e(i)===``?a:t`<arp-picture .source=${e(i)} .alt=${g} .inline=${!0} .fills=${!0} .context=${this.context}></arp-picture>`}
      <div class="arp-product-text">
        ${e(d)===``?a:t`<span class="arp-badge" dir="auto">${e(d)}</span>`}
        ${e(s)===``?a:t`<span class="arp-note" dir="auto">${e(s)}</span>`}
        <h4 class="arp-title" dir="auto">${m===null||e(f)===``?g:t`<a
          class="arp-link" href=${m.href} target=${h?`_blank`:a} rel="noopener noreferrer nofollow" title=${h?p(`opensHost`,{host:m.host}):a}
        >${g}</a>`}</h4>
        ${e(c)===``?a:t`<p class="arp-note" dir="auto">${e(c)}</p>`}
        ${_===``?a:t`<p class="arp-price" dir="auto">${_}</p>`}
        ${h&&e(f)!==``?t`<p class="arp-note arp-host">${o(`open`)}${m.host}</p>`:a}
      </div>
    </li>`}};i(d),r(`arp-product-cards`,p);export{p as ArpProductCards};