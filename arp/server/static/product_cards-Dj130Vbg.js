import{E as e,K as t,N as n,O as r,P as i,R as a,U as o,V as s,x as c}from"./page-oicHKnFV.js";import{_ as l,v as u}from"./drawing-CtsGL_Du.js";var d=`.arp-products{gap:calc(3 * var(--_arp-s));display:grid}.arp-products>header{flex-wrap:wrap;justify-content:space-between;align-items:center;gap:.5rem 1rem;display:flex}.arp-product-list{gap:calc(3 * var(--_arp-s));grid-template-columns:repeat(auto-fill,minmax(min(13.5rem,100%),1fr));margin:0;padding:0;list-style:none;display:grid}.arp-product{flex-direction:column;padding:0;display:flex;overflow:hidden}.arp-product>arp-picture.arp img{aspect-ratio:4/3;object-fit:cover;border-radius:0;width:100%}.arp-product .arp-picture-place{aspect-ratio:4/3;border:0;border-block-end:1px solid var(--_arp-line);text-align:center;border-radius:0;flex-direction:column;justify-content:center}.arp-product-text{padding:calc(3.5 * var(--_arp-s)) calc(4 * var(--_arp-s));flex-direction:column;flex:1;align-items:flex-start;gap:.2rem;display:flex}.arp-badge{background:var(--_arp-tint);color:var(--_arp-accent-ink);border-radius:1rem;margin-block-end:.2rem;padding:.05rem .55rem;font-size:.75rem;font-weight:600}.arp-price{font-variant-numeric:tabular-nums;margin:0;margin-block-start:auto;padding-block-start:.4rem;font-weight:600}.arp-product .arp-host{align-items:center;gap:.3rem;font-size:.8125rem;display:flex}`,f=7,p=class extends n{static properties={wanted:{state:!0}};#e=c(`products`);constructor(){super(),this.wanted=``}draw({title:n,cards:i}){let{t:a}=this,c=e(i),l=this.wanted.toLocaleLowerCase(a.locale).split(/\s+/).filter(Boolean),u=c.filter(e=>{let t=[e.name,e.brand,e.description,e.badge,e.price].map(r).join(` `).toLocaleLowerCase(a.locale);return l.every(e=>t.includes(e))}),d=r(n);return t`<section class="arp-products" role="group" aria-labelledby=${d?this.#e:o} aria-label=${d?o:a(`products`)}>
      ${d||c.length>=f?t`<header>
        ${d?t`<h3 class="arp-title" id=${this.#e} dir="auto">${d}</h3>`:o}
        ${c.length>=f?t`<label class="arp-search">${s(`search`)}<span class="arp-hidden">${a(`filter`)}</span>
          <input class="arp-input" type="search" dir="auto" placeholder=${a(`filter`)} .value=${this.wanted} @input=${this.#t} /></label>`:o}
      </header>`:o}
      <p class="arp-hidden" role="status">${this.wanted===``?o:a(`found`,{count:u.length,all:c.length})}</p>
      <ul class="arp-product-list">${u.map(e=>this.#n(e))}</ul>
    </section>`}#t=e=>{this.wanted=e.target.value};#n({name:e,price:n,image:i,brand:a,description:c,badge:d,url:f}){let{t:p}=this,m=u(r(f),this.context),h=m!==null&&l(m),g=r(e),_=typeof n==`number`?p.number(n,{minimumFractionDigits:n%1==0?0:2}):r(n);return t`<li class="arp-card arp-product">
      ${r(i)===``?o:t`<arp-picture .source=${r(i)} .alt=${g} .inline=${!0} .fills=${!0} .context=${this.context}></arp-picture>`}
      <div class="arp-product-text">
        ${r(d)===``?o:t`<span class="arp-badge" dir="auto">${r(d)}</span>`}
        ${r(a)===``?o:t`<span class="arp-note" dir="auto">${r(a)}</span>`}
        <h4 class="arp-title" dir="auto">${m===null||r(f)===``?g:t`<a
          class="arp-link" href=${m.href} target=${h?`_blank`:o} rel="noopener noreferrer nofollow" title=${h?p(`opensHost`,{host:m.host}):o}
        >${g}</a>`}</h4>
        ${r(c)===``?o:t`<p class="arp-note" dir="auto">${r(c)}</p>`}
        ${_===``?o:t`<p class="arp-price" dir="auto">${_}</p>`}
        ${h&&r(f)!==``?t`<p class="arp-note arp-host">${s(`open`)}${m.host}</p>`:o}
      </div>
    </li>`}};a(d),i(`arp-product-cards`,p);export{p as ArpProductCards};