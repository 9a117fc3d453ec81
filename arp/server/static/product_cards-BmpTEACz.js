import{E as e,R as t,W as n,X as r,q as i,w as a,y as o}from"./page-CDd6qxm-.js";import{O as s,b as c,c as l,x as u}from"./drawing-COOceEeT.js";var d=`.arp-products{gap:calc(3 * var(--_arp-s));display:grid}.arp-products>header{flex-wrap:wrap;justify-content:space-between;align-items:center;gap:.5rem 1rem;display:flex}.arp-product-list{gap:calc(3 * var(--_arp-s));grid-template-columns:repeat(auto-fill,minmax(min(13.5rem,100%),1fr));margin:0;padding:0;list-style:none;display:grid}.arp-product{flex-direction:column;padding:0;display:flex;overflow:hidden}.arp-product>arp-picture.arp img{aspect-ratio:4/3;object-fit:cover;border-radius:0;width:100%}.arp-product .arp-picture-place{aspect-ratio:4/3;border:0;border-block-end:1px solid var(--_arp-line);text-align:center;border-radius:0;flex-direction:column;justify-content:center}.arp-product-text{padding:calc(3.5 * var(--_arp-s)) calc(4 * var(--_arp-s));flex-direction:column;flex:1;align-items:flex-start;gap:.2rem;display:flex}.arp-badge{background:var(--_arp-tint);color:var(--_arp-accent-ink);border-radius:1rem;margin-block-end:.2rem;padding:.05rem .55rem;font-size:.75rem;font-weight:600}.arp-price{font-variant-numeric:tabular-nums;margin:0;margin-block-start:auto;padding-block-start:.4rem;font-weight:600}.arp-product .arp-host{align-items:center;gap:.3rem;font-size:.8125rem;display:flex}`,f=7,p=class extends l{static properties={wanted:{state:!0}};#e=o(`products`);constructor(){super(),this.wanted=``}draw({title:t,cards:n}){let{t:o}=this,c=a(n),l=this.wanted.toLocaleLowerCase(o.locale).split(/\s+/).filter(Boolean),u=c.filter(t=>{let n=[t.name,t.brand,t.description,t.badge,t.price].map(e).join(` `).toLocaleLowerCase(o.locale);return l.every(e=>n.includes(e))}),d=e(t);return r`<section class="arp-products" role="group" aria-labelledby=${d?this.#e:i} aria-label=${d?i:o(`products`)}>
      ${d||c.length>=f?r`<header>
        ${d?r`<h3 class="arp-title" id=${this.#e} dir="auto">${d}</h3>`:i}
        ${c.length>=f?r`<label class="arp-search">${s(`search`)}<span class="arp-hidden">${o(`filter`)}</span>
          <input class="arp-input" type="search" dir="auto" placeholder=${o(`filter`)} .value=${this.wanted} @input=${this.#t} /></label>`:i}
      </header>`:i}
      <p class="arp-hidden" role="status">${this.wanted===``?i:o(`found`,{count:u.length,all:c.length})}</p>
      <ul class="arp-product-list">${u.map(e=>this.#n(e))}</ul>
    </section>`}#t=e=>{this.wanted=e.target.value};#n({name:t,price:n,image:a,brand:o,description:l,badge:d,url:f}){let{t:p}=this,m=u(e(f),this.context),h=m!==null&&c(m),g=e(t),_=typeof n==`number`?p.number(n,{minimumFractionDigits:n%1==0?0:2}):e(n);return r`<li class="arp-card arp-product">
      ${e(a)===``?i:r`<arp-picture .source=${e(a)} .alt=${g} .inline=${!0} .fills=${!0} .context=${this.context}></arp-picture>`}
      <div class="arp-product-text">
        ${e(d)===``?i:r`<span class="arp-badge" dir="auto">${e(d)}</span>`}
        ${e(o)===``?i:r`<span class="arp-note" dir="auto">${e(o)}</span>`}
        <h4 class="arp-title" dir="auto">${m===null||e(f)===``?g:r`<a
          class="arp-link" href=${m.href} target=${h?`_blank`:i} rel="noopener noreferrer nofollow" title=${h?p(`opensHost`,{host:m.host}):i}
        >${g}</a>`}</h4>
        ${e(l)===``?i:r`<p class="arp-note" dir="auto">${e(l)}</p>`}
        ${_===``?i:r`<p class="arp-price" dir="auto">${_}</p>`}
        ${h&&e(f)!==``?r`<p class="arp-note arp-host">${s(`open`)}${m.host}</p>`:i}
      </div>
    </li>`}};n(d),t(`arp-product-cards`,p);export{p as ArpProductCards};