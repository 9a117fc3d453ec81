import{E as e,N as t,Q as n,R as r,W as i,Y as a,j as o,q as s,z as c}from"./page-C6Qp9Ew-.js";import{g as l,h as u}from"./drawing-Cjm2KHkU.js";var d=`.arp-products{gap:calc(3 * var(--_arp-s));display:grid}.arp-products>header{flex-wrap:wrap;justify-content:space-between;align-items:center;gap:.5rem 1rem;display:flex}.arp-product-list{gap:calc(3 * var(--_arp-s));grid-template-columns:repeat(auto-fill,minmax(min(13.5rem,100%),1fr));margin:0;padding:0;list-style:none;display:grid}.arp-product{flex-direction:column;padding:0;display:flex;overflow:hidden}.arp-product>arp-picture.arp img{aspect-ratio:4/3;object-fit:cover;border-radius:0;width:100%}.arp-product .arp-picture-place{aspect-ratio:4/3;border:0;border-block-end:1px solid var(--_arp-line);text-align:center;border-radius:0;flex-direction:column;justify-content:center}.arp-product-text{padding:calc(3.5 * var(--_arp-s)) calc(4 * var(--_arp-s));flex-direction:column;flex:1;align-items:flex-start;gap:.2rem;display:flex}.arp-badge{background:var(--_arp-tint);color:var(--_arp-accent-ink);border-radius:1rem;margin-block-end:.2rem;padding:.05rem .55rem;font-size:.75rem;font-weight:600}.arp-price{font-variant-numeric:tabular-nums;margin:0;margin-block-start:auto;padding-block-start:.4rem;font-weight:600}.arp-product .arp-host{align-items:center;gap:.3rem;font-size:.8125rem;display:flex}`,f=7,p=class extends r{static properties={wanted:{state:!0}};#e=e(`products`);constructor(){super(),this.wanted=``}draw({title:e,cards:r}){let{t:i}=this,c=o(r),l=this.wanted.toLocaleLowerCase(i.locale).split(/\s+/).filter(Boolean),u=c.filter(e=>{let n=[e.name,e.brand,e.description,e.badge,e.price].map(t).join(` `).toLocaleLowerCase(i.locale);return l.every(e=>n.includes(e))}),d=t(e);return n`<section class="arp-products" role="group" aria-labelledby=${d?this.#e:a} aria-label=${d?a:i(`products`)}>
      ${d||c.length>=f?n`<header>
        ${d?n`<h3 class="arp-title" id=${this.#e} dir="auto">${d}</h3>`:a}
        ${c.length>=f?n`<label class="arp-search">${s(`search`)}<span class="arp-hidden">${i(`filter`)}</span>
          <input class="arp-input" type="search" dir="auto" placeholder=${i(`filter`)} .value=${this.wanted} @input=${this.#t} /></label>`:a}
      </header>`:a}
      <p class="arp-hidden" role="status">${this.wanted===``?a:i(`found`,{count:u.length,all:c.length})}</p>
      <ul class="arp-product-list">${u.map(e=>this.#n(e))}</ul>
    </section>`}#t=e=>{this.wanted=e.target.value};#n({name:e,price:r,image:i,brand:o,description:c,badge:d,url:f}){let{t:p}=this,m=l(t(f),this.context),h=m!==null&&u(m),g=t(e),_=typeof r==`number`?p.number(r,{minimumFractionDigits:r%1==0?0:2}):t(r);return n`<li class="arp-card arp-product">
      ${t(i)===``?a:n`<arp-picture .source=${t(i)} .alt=${g} .inline=${!0} .fills=${!0} .context=${this.context}></arp-picture>`}
      <div class="arp-product-text">
        ${t(d)===``?a:n`<span class="arp-badge" dir="auto">${t(d)}</span>`}
        ${t(o)===``?a:n`<span class="arp-note" dir="auto">${t(o)}</span>`}
        <h4 class="arp-title" dir="auto">${m===null||t(f)===``?g:n`<a
          class="arp-link" href=${m.href} target=${h?`_blank`:a} rel="noopener noreferrer nofollow" title=${h?p(`opensHost`,{host:m.host}):a}
        >${g}</a>`}</h4>
        ${t(c)===``?a:n`<p class="arp-note" dir="auto">${t(c)}</p>`}
        ${_===``?a:n`<p class="arp-price" dir="auto">${_}</p>`}
        ${h&&t(f)!==``?n`<p class="arp-note arp-host">${s(`open`)}${m.host}</p>`:a}
      </div>
    </li>`}};i(d),c(`arp-product-cards`,p);export{p as ArpProductCards};