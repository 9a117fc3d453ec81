import{E as e,W as t,X as n,q as r,w as i,y as a,z as o}from"./page-MIZ1_8RS.js";import{D as s,b as c,s as l,y as u}from"./drawing-DN3FM6TV.js";var d=`.arp-products{gap:calc(3 * var(--_arp-s));display:grid}.arp-products>header{flex-wrap:wrap;justify-content:space-between;align-items:center;gap:.5rem 1rem;display:flex}.arp-product-list{gap:calc(3 * var(--_arp-s));grid-template-columns:repeat(auto-fill,minmax(min(13.5rem,100%),1fr));margin:0;padding:0;list-style:none;display:grid}.arp-product{flex-direction:column;padding:0;display:flex;overflow:hidden}.arp-product>arp-picture.arp img{aspect-ratio:4/3;object-fit:cover;border-radius:0;width:100%}.arp-product .arp-picture-place{aspect-ratio:4/3;border:0;border-block-end:1px solid var(--_arp-line);text-align:center;border-radius:0;flex-direction:column;justify-content:center}.arp-product-text{padding:calc(3.5 * var(--_arp-s)) calc(4 * var(--_arp-s));flex-direction:column;flex:1;align-items:flex-start;gap:.2rem;display:flex}.arp-badge{background:var(--_arp-tint);color:var(--_arp-accent-ink);border-radius:1rem;margin-block-end:.2rem;padding:.05rem .55rem;font-size:.75rem;font-weight:600}.arp-price{font-variant-numeric:tabular-nums;margin:0;margin-block-start:auto;padding-block-start:.4rem;font-weight:600}.arp-product .arp-host{align-items:center;gap:.3rem;font-size:.8125rem;display:flex}`,f=7,p=class extends l{static properties={wanted:{state:!0}};#e=a(`products`);constructor(){super(),this.wanted=``}draw({title:t,cards:a}){let{t:o}=this,c=i(a),l=this.wanted.toLocaleLowerCase(o.locale).split(/\s+/).filter(Boolean),u=c.filter(t=>{let n=[t.name,t.brand,t.description,t.badge,t.price].map(e).join(` `).toLocaleLowerCase(o.locale);return l.every(e=>n.includes(e))}),d=e(t);return n`<section class="arp-products" role="group" aria-labelledby=${d?this.#e:r} aria-label=${d?r:o(`products`)}>
      ${d||c.length>=f?n`<header>
        ${d?n`<h3 class="arp-title" id=${this.#e} dir="auto">${d}</h3>`:r}
        ${c.length>=f?n`<label class="arp-search">${s(`search`)}<span class="arp-hidden">${o(`filter`)}</span>
          <input class="arp-input" type="search" dir="auto" placeholder=${o(`filter`)} .value=${this.wanted} @input=${this.#t} /></label>`:r}
      </header>`:r}
      <p class="arp-hidden" role="status">${this.wanted===``?r:o(`found`,{count:u.length,all:c.length})}</p>
      <ul class="arp-product-list">${u.map(e=>this.#n(e))}</ul>
    </section>`}#t=e=>{this.wanted=e.target.value};#n({name:t,price:i,image:a,brand:o,description:l,badge:d,url:f}){let{t:p}=this,m=c(e(f),this.context),h=m!==null&&u(m),g=e(t),_=typeof i==`number`?p.number(i,{minimumFractionDigits:i%1==0?0:2}):e(i);return n`<li class="arp-card arp-product">
      ${e(a)===``?r:n`<arp-picture .source=${e(a)} .alt=${g} .inline=${!0} .fills=${!0} .context=${this.context}></arp-picture>`}
      <div class="arp-product-text">
        ${e(d)===``?r:n`<span class="arp-badge" dir="auto">${e(d)}</span>`}
        ${e(o)===``?r:n`<span class="arp-note" dir="auto">${e(o)}</span>`}
        <h4 class="arp-title" dir="auto">${m===null||e(f)===``?g:n`<a
          class="arp-link" href=${m.href} target=${h?`_blank`:r} rel="noopener noreferrer nofollow" title=${h?p(`opensHost`,{host:m.host}):r}
        >${g}</a>`}</h4>
        ${e(l)===``?r:n`<p class="arp-note" dir="auto">${e(l)}</p>`}
        ${_===``?r:n`<p class="arp-price" dir="auto">${_}</p>`}
        ${h&&e(f)!==``?n`<p class="arp-note arp-host">${s(`open`)}${m.host}</p>`:r}
      </div>
    </li>`}};t(d),o(`arp-product-cards`,p);export{p as ArpProductCards};