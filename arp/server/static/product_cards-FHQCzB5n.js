import{F as e,H as t,P as n,S as r,W as i,_ as a,q as o,w as s,z as c}from"./page-D52ND07P.js";import{_ as l,v as u}from"./drawing-k_DmEjjN.js";var d=`.arp-products{gap:calc(3 * var(--_arp-s));display:grid}.arp-products>header{flex-wrap:wrap;justify-content:space-between;align-items:center;gap:.5rem 1rem;display:flex}.arp-product-list{gap:calc(3 * var(--_arp-s));grid-template-columns:repeat(auto-fill,minmax(min(13.5rem,100%),1fr));margin:0;padding:0;list-style:none;display:grid}.arp-product{flex-direction:column;padding:0;display:flex;overflow:hidden}.arp-product>arp-picture.arp img{aspect-ratio:4/3;object-fit:cover;border-radius:0;width:100%}.arp-product .arp-picture-place{aspect-ratio:4/3;border:0;border-block-end:1px solid var(--_arp-line);text-align:center;border-radius:0;flex-direction:column;justify-content:center}.arp-product-text{padding:calc(3.5 * var(--_arp-s)) calc(4 * var(--_arp-s));flex-direction:column;flex:1;align-items:flex-start;gap:.2rem;display:flex}.arp-badge{background:var(--_arp-tint);color:var(--_arp-accent-ink);border-radius:1rem;margin-block-end:.2rem;padding:.05rem .55rem;font-size:.75rem;font-weight:600}.arp-price{font-variant-numeric:tabular-nums;margin:0;margin-block-start:auto;padding-block-start:.4rem;font-weight:600}.arp-product .arp-host{align-items:center;gap:.3rem;font-size:.8125rem;display:flex}`,f=7,p=class extends n{static properties={wanted:{state:!0}};#e=a(`products`);constructor(){super(),this.wanted=``}draw({title:e,cards:n}){let{t:a}=this,c=r(n),l=this.wanted.toLocaleLowerCase(a.locale).split(/\s+/).filter(Boolean),u=c.filter(e=>{let t=[e.name,e.brand,e.description,e.badge,e.price].map(s).join(` `).toLocaleLowerCase(a.locale);return l.every(e=>t.includes(e))}),d=s(e);return o`<section class="arp-products" role="group" aria-labelledby=${d?this.#e:i} aria-label=${d?i:a(`products`)}>
      ${d||c.length>=f?o`<header>
        ${d?o`<h3 class="arp-title" id=${this.#e} dir="auto">${d}</h3>`:i}
        ${c.length>=f?o`<label class="arp-search">${t(`search`)}<span class="arp-hidden">${a(`filter`)}</span>
          <input class="arp-input" type="search" dir="auto" placeholder=${a(`filter`)} .value=${this.wanted} @input=${this.#t} /></label>`:i}
      </header>`:i}
      <p class="arp-hidden" role="status">${this.wanted===``?i:a(`found`,{count:u.length,all:c.length})}</p>
      <ul class="arp-product-list">${u.map(e=>this.#n(e))}</ul>
    </section>`}#t=e=>{this.wanted=e.target.value};#n({name:e,price:n,image:r,brand:a,description:c,badge:d,url:f}){let{t:p}=this,m=u(s(f),this.context),h=m!==null&&l(m),g=s(e),_=typeof n==`number`?p.number(n,{minimumFractionDigits:n%1==0?0:2}):s(n);return o`<li class="arp-card arp-product">
      ${s(r)===``?i:o`<arp-picture .source=${s(r)} .alt=${g} .inline=${!0} .fills=${!0} .context=${this.context}></arp-picture>`}
      <div class="arp-product-text">
        ${s(d)===``?i:o`<span class="arp-badge" dir="auto">${s(d)}</span>`}
        ${s(a)===``?i:o`<span class="arp-note" dir="auto">${s(a)}</span>`}
        <h4 class="arp-title" dir="auto">${m===null||s(f)===``?g:o`<a
          class="arp-link" href=${m.href} target=${h?`_blank`:i} rel="noopener noreferrer nofollow" title=${h?p(`opensHost`,{host:m.host}):i}
        >${g}</a>`}</h4>
        ${s(c)===``?i:o`<p class="arp-note" dir="auto">${s(c)}</p>`}
        ${_===``?i:o`<p class="arp-price" dir="auto">${_}</p>`}
        ${h&&s(f)!==``?o`<p class="arp-note arp-host">${t(`open`)}${m.host}</p>`:i}
      </div>
    </li>`}};c(d),e(`arp-product-cards`,p);export{p as ArpProductCards};