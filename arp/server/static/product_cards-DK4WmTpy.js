import{I as e,Q as t,R as n,U as r,W as i,Y as a,_ as o,et as s,g as c,j as l,rt as u}from"./page-Dh9Ye73N.js";var d=`.arp-products{gap:calc(3 * var(--_arp-s));display:grid}.arp-products>header{flex-wrap:wrap;justify-content:space-between;align-items:center;gap:.5rem 1rem;display:flex}.arp-product-list{gap:calc(3 * var(--_arp-s));grid-template-columns:repeat(auto-fill,minmax(min(13.5rem,100%),1fr));margin:0;padding:0;list-style:none;display:grid}.arp-product{flex-direction:column;padding:0;display:flex;overflow:hidden}.arp-product>arp-picture.arp img{aspect-ratio:4/3;object-fit:cover;border-radius:0;width:100%}.arp-product .arp-picture-place{aspect-ratio:4/3;border:0;border-block-end:1px solid var(--_arp-line);text-align:center;border-radius:0;flex-direction:column;justify-content:center}.arp-product-text{padding:calc(3.5 * var(--_arp-s)) calc(4 * var(--_arp-s));flex-direction:column;flex:1;align-items:flex-start;gap:.2rem;display:flex}.arp-badge{background:var(--_arp-tint);color:var(--_arp-accent-ink);border-radius:1rem;margin-block-end:.2rem;padding:.05rem .55rem;font-size:.75rem;font-weight:600}.arp-price{font-variant-numeric:tabular-nums;margin:0;margin-block-start:auto;padding-block-start:.4rem;font-weight:600}.arp-product .arp-host{align-items:center;gap:.3rem;font-size:.8125rem;display:flex}`,f=7,p=class extends r{static properties={wanted:{state:!0}};#e=l(`products`);constructor(){super(),this.wanted=``}draw({title:r,cards:i}){let{t:a}=this,o=e(i),c=this.wanted.toLocaleLowerCase(a.locale).split(/\s+/).filter(Boolean),l=o.filter(e=>{let t=[e.name,e.brand,e.description,e.badge,e.price].map(n).join(` `).toLocaleLowerCase(a.locale);return c.every(e=>t.includes(e))}),d=n(r);return u`<section class="arp-products" role="group" aria-labelledby=${d?this.#e:s} aria-label=${d?s:a(`products`)}>
      ${d||o.length>=f?u`<header>
        ${d?u`<h3 class="arp-title" id=${this.#e} dir="auto">${d}</h3>`:s}
        ${o.length>=f?u`<label class="arp-search">${t(`search`)}<span class="arp-hidden">${a(`filter`)}</span>
          <input class="arp-input" type="search" dir="auto" placeholder=${a(`filter`)} .value=${this.wanted} @input=${this.#t} /></label>`:s}
      </header>`:s}
      <p class="arp-hidden" role="status">${this.wanted===``?s:a(`found`,{count:l.length,all:o.length})}</p>
      <ul class="arp-product-list">${l.map(e=>this.#n(e))}</ul>
    </section>`}#t=e=>{this.wanted=e.target.value};#n({name:e,price:r,image:i,brand:a,description:l,badge:d,url:f}){let{t:p}=this,m=o(n(f),this.context),h=m!==null&&c(m),g=n(e),_=typeof r==`number`?p.number(r,{minimumFractionDigits:r%1==0?0:2}):n(r);return u`<li class="arp-card arp-product">
      ${n(i)===``?s:u`<arp-picture .source=${n(i)} .alt=${g} .inline=${!0} .fills=${!0} .context=${this.context}></arp-picture>`}
      <div class="arp-product-text">
        ${n(d)===``?s:u`<span class="arp-badge" dir="auto">${n(d)}</span>`}
        ${n(a)===``?s:u`<span class="arp-note" dir="auto">${n(a)}</span>`}
        <h4 class="arp-title" dir="auto">${m===null||n(f)===``?g:u`<a
          class="arp-link" href=${m.href} target=${h?`_blank`:s} rel="noopener noreferrer nofollow" title=${h?p(`opensHost`,{host:m.host}):s}
        >${g}</a>`}</h4>
        ${n(l)===``?s:u`<p class="arp-note" dir="auto">${n(l)}</p>`}
        ${_===``?s:u`<p class="arp-price" dir="auto">${_}</p>`}
        ${h&&n(f)!==``?u`<p class="arp-note arp-host">${t(`open`)}${m.host}</p>`:s}
      </div>
    </li>`}};a(d),i(`arp-product-cards`,p);export{p as ArpProductCards};