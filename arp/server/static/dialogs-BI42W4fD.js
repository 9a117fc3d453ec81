import{J as e,X as t,et as n,h as r}from"./page-MIZ1_8RS.js";function i(n,i,a,o){let s=document.activeElement,c=document.createElement(`dialog`);c.className=`page-dialog arp ${o}`,c.dir=i.t.direction,c.lang=i.t.locale,c.setAttribute(`aria-labelledby`,`page-dialog-title`),e(t`<header>
        <h2 id="page-dialog-title" dir="auto">${n}</h2>
        <button type="button" class="arp-icon-button" aria-label=${i.t(`close`)} @click=${()=>c.close()}>${r(`close`)}</button>
      </header>
      <div class="page-dialog-body">${a}</div>`,c),c.addEventListener(`close`,()=>{c.remove(),s?.focus()}),c.addEventListener(`click`,e=>{e.target===c&&c.close()}),document.body.append(c),c.showModal()}function a(e,n){let{t:r}=e,a=t`<p>${r(`otherTokenAsked`)}</p>
    <div class="page-dialog-actions">
      <button type="button" class="arp-button" autofocus @click=${e=>e.currentTarget.closest(`dialog`)?.close()}>${r(`keepToken`)}</button>
      <button type="button" class="arp-button arp-quiet" @click=${n}>${r(`takeToken`)}</button>
    </div>`;i(r(`otherToken`),e,a,`page-token-dialog`)}function o(e,n,r){let{t:a}=e,o=[[`Enter`,a(`send`)],[`Shift Enter`,a(`newLine`)],[`Esc`,a(`stop`)],[`Alt ↑ ↓`,a(`moveBetweenMessages`)],[`F6`,a(`moveBetweenRegions`)],[`/`,a(`message`)],[`n`,a(`newChat`)],[`s`,a(`searchChats`)],[`?`,a(`shortcuts`)]],s=t`<dl class="page-keys">
      ${o.map(([e,n])=>t`<div><dt>${e.split(` `).map(e=>t`<kbd>${e}</kbd>`)}</dt><dd>${n}</dd></div>`)}
    </dl>
    <label class="page-check"
      ><input type="checkbox" .checked=${n} @change=${e=>r(e.target.checked)} /> ${a(`singleKeys`)}</label
    >`;i(a(`shortcuts`),e,s,`page-keys-dialog`)}function s(e,r,a){let{t:o,locale:s,theme:c}=a,l=n({t:o,locale:s,theme:c}),u=t`<p class="arp-note">${o(`importedChat`)}</p>
    <div class="arp-log">${r.map(e=>t`<arp-message readonly .turn=${e} .context=${l}></arp-message>`)}</div>`;i(e||o(`importChat`),a,u,`page-imported`)}export{a as askForToken,i as openDialog,s as showImported,o as showKeys};