import{E as e,J as t,K as n,L as r,N as i,R as a,U as o,Z as s,j as c}from"./page-CuYI87Fs.js";import{_ as l,v as u}from"./drawing-BHBkP_9h.js";var d=`.arp-products{gap:calc(3 * var(--_arp-s));display:grid}.arp-products>header{flex-wrap:wrap;justify-content:space-between;align-items:center;gap:.5rem 1rem;display:flex}.arp-product-list{gap:calc(3 * var(--_arp-s));grid-template-columns:repeat(auto-fill,minmax(min(13.5rem,100%),1fr));margin:0;padding:0;list-style:none;display:grid}.arp-product{flex-direction:column;padding:0;display:flex;overflow:hidden}.arp-product>arp-picture.arp img{aspect-ratio:4/3;object-fit:cover;border-radius:0;width:100%}.arp-product .arp-picture-place{aspect-ratio:4/3;border:0;border-block-end:1px solid var(--_arp-line);text-align:center;border-radius:0;flex-direction:column;justify-content:center}.arp-product-text{padding:calc(3.5 * var(--_arp-s)) calc(4 * var(--_arp-s));flex-direction:column;flex:1;align-items:flex-start;gap:.2rem;display:flex}.arp-badge{background:var(--_arp-tint);color:var(--_arp-accent-ink);border-radius:1rem;margin-block-end:.2rem;padding:.05rem .55rem;font-size:.75rem;font-weight:600}.arp-price{font-variant-numeric:tabular-nums;margin:0;margin-block-start:auto;padding-block-start:.4rem;font-weight:600}.arp-product .arp-host{align-items:center;gap:.3rem;font-size:.8125rem;display:flex}`,f=7,p=class extends r{static properties={wanted:{state:!0}};#e=e(`products`);constructor(){super(),this.wanted=``}draw({title:e,cards:r}){let{t:a}=this,o=c(r),l=this.wanted.toLocaleLowerCase(a.locale).split(/\s+/).filter(Boolean),u=o.filter(e=>{let t=[e.name,e.brand,e.description,e.badge,e.price].map(i).join(` `).toLocaleLowerCase(a.locale);return l.every(e=>t.includes(e))}),d=i(e);return s`<section class="arp-products" role="group" aria-labelledby=${d?this.#e:t} aria-label=${d?t:a(`products`)}>
      ${d||o.length>=f?s`<header>
        ${d?s`<h3 class="arp-title" id=${this.#e} dir="auto">${d}</h3>`:t}
        ${o.length>=f?s`<label class="arp-search">${n(`search`)}<span class="arp-hidden">${a(`filter`)}</span>
          <input class="arp-input" type="search" dir="auto" placeholder=${a(`filter`)} .value=${this.wanted} @input=${this.#t} /></label>`:t}
      </header>`:t}
      <p class="arp-hidden" role="status">${this.wanted===``?t:a(`found`,{count:u.length,all:o.length})}</p>
      <ul class="arp-product-list">${u.map(e=>this.#n(e))}</ul>
    </section>`}#t=e=>{this.wanted=e.target.value};#n({name:e,price:r,image:a,brand:o,description:c,badge:d,url:f}){let{t:p}=this,m=u(i(f),this.context),h=m!==null&&l(m),g=i(e),_=typeof r==`number`?p.number(r,{minimumFractionDigits:r%1==0?0:2}):i(r);return s`<li class="arp-card arp-product">
      ${i(a)===``?t:s`<arp-picture .source=${i(a)} .alt=${g} .inline=${!0} .fills=${!0} .context=${this.context}></arp-picture>`}
      <div class="arp-product-text">
        ${i(d)===``?t:s`<span class="arp-badge" dir="auto">${i(d)}</span>`}
        ${i(o)===``?t:s`<span class="arp-note" dir="auto">${i(o)}</span>`}
        <h4 class="arp-title" dir="auto">${m===null||i(f)===``?g:s`<a
          class="arp-link" href=${m.href} target=${h?`_blank`:t} rel="noopener noreferrer nofollow" title=${h?p(`opensHost`,{host:m.host}):t}
        >${g}</a>`}</h4>
        ${i(c)===``?t:s`<p class="arp-note" dir="auto">${i(c)}</p>`}
        ${_===``?t:s`<p class="arp-price" dir="auto">${_}</p>`}
        ${h&&i(f)!==``?s`<p class="arp-note arp-host">${n(`open`)}${m.host}</p>`:t}
      </div>
    </li>`}};o(d),a(`arp-product-cards`,p);export{p as ArpProductCards};