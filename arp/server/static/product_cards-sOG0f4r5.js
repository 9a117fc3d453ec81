import{D as e,M as t,P as n,W as r,X as i,q as a,z as o}from"./page-DXlwF1dq.js";import{D as s,b as c,s as l,x as u}from"./drawing-BQcS-xo0.js";var d=`.arp-products{gap:calc(3 * var(--_arp-s));display:grid}.arp-products>header{flex-wrap:wrap;justify-content:space-between;align-items:center;gap:.5rem 1rem;display:flex}.arp-product-list{gap:calc(3 * var(--_arp-s));grid-template-columns:repeat(auto-fill,minmax(min(13.5rem,100%),1fr));margin:0;padding:0;list-style:none;display:grid}.arp-product{flex-direction:column;padding:0;display:flex;overflow:hidden}.arp-product>arp-picture.arp img{aspect-ratio:4/3;object-fit:cover;border-radius:0;width:100%}.arp-product .arp-picture-place{aspect-ratio:4/3;border:0;border-block-end:1px solid var(--_arp-line);text-align:center;border-radius:0;flex-direction:column;justify-content:center}.arp-product-text{padding:calc(3.5 * var(--_arp-s)) calc(4 * var(--_arp-s));flex-direction:column;flex:1;align-items:flex-start;gap:.2rem;display:flex}.arp-badge{background:var(--_arp-tint);color:var(--_arp-accent-ink);border-radius:1rem;margin-block-end:.2rem;padding:.05rem .55rem;font-size:.75rem;font-weight:600}.arp-price{font-variant-numeric:tabular-nums;margin:0;margin-block-start:auto;padding-block-start:.4rem;font-weight:600}.arp-product .arp-host{align-items:center;gap:.3rem;font-size:.8125rem;display:flex}`,f=7,p=class extends l{static properties={wanted:{state:!0}};#e=e(`products`);constructor(){super(),this.wanted=``}draw({title:e,cards:r}){let{t:o}=this,c=t(r),l=this.wanted.toLocaleLowerCase(o.locale).split(/\s+/).filter(Boolean),u=c.filter(e=>{let t=[e.name,e.brand,e.description,e.badge,e.price].map(n).join(` `).toLocaleLowerCase(o.locale);return l.every(e=>t.includes(e))}),d=n(e);return i`<section class="arp-products" role="group" aria-labelledby=${d?this.#e:a} aria-label=${d?a:o(`products`)}>
      ${d||c.length>=f?i`<header>
        ${d?i`<h3 class="arp-title" id=${this.#e} dir="auto">${d}</h3>`:a}
        ${c.length>=f?i`<label class="arp-search">${s(`search`)}<span class="arp-hidden">${o(`filter`)}</span>
          <input class="arp-input" type="search" dir="auto" placeholder=${o(`filter`)} .value=${this.wanted} @input=${this.#t} /></label>`:a}
      </header>`:a}
      <p class="arp-hidden" role="status">${this.wanted===``?a:o(`found`,{count:u.length,all:c.length})}</p>
      <ul class="arp-product-list">${u.map(e=>this.#n(e))}</ul>
    </section>`}#t=e=>{this.wanted=e.target.value};#n({name:e,price:t,image:r,brand:o,description:l,badge:d,url:f}){let{t:p}=this,m=u(n(f),this.context),h=m!==null&&c(m),g=n(e),_=typeof t==`number`?p.number(t,{minimumFractionDigits:t%1==0?0:2}):n(t);return i`<li class="arp-card arp-product">
      ${n(r)===``?a:i`<arp-picture .source=${n(r)} .alt=${g} .inline=${!0} .fills=${!0} .context=${this.context}></arp-picture>`}
      <div class="arp-product-text">
        ${n(d)===``?a:i`<span class="arp-badge" dir="auto">${n(d)}</span>`}
        ${n(o)===``?a:i`<span class="arp-note" dir="auto">${n(o)}</span>`}
        <h4 class="arp-title" dir="auto">${m===null||n(f)===``?g:i`<a
          class="arp-link" href=${m.href} target=${h?`_blank`:a} rel="noopener noreferrer nofollow" title=${h?p(`opensHost`,{host:m.host}):a}
        >${g}</a>`}</h4>
        ${n(l)===``?a:i`<p class="arp-note" dir="auto">${n(l)}</p>`}
        ${_===``?a:i`<p class="arp-price" dir="auto">${_}</p>`}
        ${h&&n(f)!==``?i`<p class="arp-note arp-host">${s(`open`)}${m.host}</p>`:a}
      </div>
    </li>`}};r(d),o(`arp-product-cards`,p);export{p as ArpProductCards};