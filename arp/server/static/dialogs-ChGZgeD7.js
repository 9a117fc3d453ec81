import{Q as e,X as t,it as n,q as r}from"./page-C6Qp9Ew-.js";function i(n,i,a,o){let s=document.activeElement,c=document.createElement(`dialog`);c.className=`page-dialog arp ${o}`,c.dir=i.t.direction,c.lang=i.t.locale,c.setAttribute(`aria-labelledby`,`page-dialog-title`),t(e`<header>
        <h2 id="page-dialog-title" dir="auto">${n}</h2>
        <button type="button" class="arp-icon-button" aria-label=${i.t(`close`)} @click=${()=>c.close()}>${r(`cross`)}</button>
      </header>
      <div class="page-dialog-body">${a}</div>`,c),c.addEventListener(`close`,()=>{c.remove(),s?.focus()}),c.addEventListener(`click`,e=>{e.target===c&&c.close()}),document.body.append(c),c.showModal()}function a(t,n){let{t:r}=t,a=e`<p>${r(`otherTokenAsked`)}</p>
    <div class="page-dialog-actions">
      <button type="button" class="arp-button" autofocus @click=${e=>e.currentTarget.closest(`dialog`)?.close()}>${r(`keepToken`)}</button>
      <button type="button" class="arp-button arp-quiet" @click=${n}>${r(`takeToken`)}</button>
    </div>`;i(r(`otherToken`),t,a,`page-token-dialog`)}function o(t,n,r){let{t:a}=t,o=[[`Enter`,a(`send`)],[`Shift Enter`,a(`newLine`)],[`Esc`,a(`stop`)],[`Alt ↑ ↓`,a(`moveBetweenMessages`)],[`F6`,a(`moveBetweenRegions`)],[`/`,a(`message`)],[`n`,a(`newChat`)],[`s`,a(`searchChats`)],[`?`,a(`shortcuts`)]],s=e`<dl class="page-keys">
      ${o.map(([t,n])=>e`<div><dt>${t.split(` `).map(t=>e`<kbd>${t}</kbd>`)}</dt><dd>${n}</dd></div>`)}
    </dl>
    <label class="page-check"
      ><input type="checkbox" .checked=${n} @change=${e=>r(e.target.checked)} /> ${a(`singleKeys`)}</label
    >`;i(a(`shortcuts`),t,s,`page-keys-dialog`)}function s(t,r,a){let{t:o,locale:s,theme:c}=a,l=n({t:o,locale:s,theme:c}),u=e`<p class="arp-note">${o(`importedChat`)}</p>
    <div class="arp-log">${r.map(t=>e`<arp-message readonly .turn=${t} .context=${l}></arp-message>`)}</div>`;i(t||o(`importChat`),a,u,`page-imported`)}export{a as askForToken,i as openDialog,s as showImported,o as showKeys};