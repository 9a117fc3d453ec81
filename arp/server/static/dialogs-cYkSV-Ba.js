import{K as e,Y as t,Z as n,et as r}from"./page-CuYI87Fs.js";function i(r,i,a,o){let s=document.activeElement,c=document.createElement(`dialog`);c.className=`page-dialog arp ${o}`,c.dir=i.t.direction,c.lang=i.t.locale,c.setAttribute(`aria-labelledby`,`page-dialog-title`),t(n`<header>
        <h2 id="page-dialog-title" dir="auto">${r}</h2>
        <button type="button" class="arp-icon-button" aria-label=${i.t(`close`)} @click=${()=>c.close()}>${e(`cross`)}</button>
      </header>
      <div class="page-dialog-body">${a}</div>`,c),c.addEventListener(`close`,()=>{c.remove(),s?.focus()}),c.addEventListener(`click`,e=>{e.target===c&&c.close()}),document.body.append(c),c.showModal()}function a(e,t){let{t:r}=e,a=n`<p>${r(`otherTokenAsked`)}</p>
    <div class="page-dialog-actions">
      <button type="button" class="arp-button" autofocus @click=${e=>e.currentTarget.closest(`dialog`)?.close()}>${r(`keepToken`)}</button>
      <button type="button" class="arp-button arp-quiet" @click=${t}>${r(`takeToken`)}</button>
    </div>`;i(r(`otherToken`),e,a,`page-token-dialog`)}function o(e,t,r){let{t:a}=e,o=[[`Enter`,a(`send`)],[`Shift Enter`,a(`newLine`)],[`Esc`,a(`stop`)],[`Alt ↑ ↓`,a(`moveBetweenMessages`)],[`F6`,a(`moveBetweenRegions`)],[`/`,a(`message`)],[`n`,a(`newChat`)],[`s`,a(`searchChats`)],[`?`,a(`shortcuts`)]],s=n`<dl class="page-keys">
      ${o.map(([e,t])=>n`<div><dt>${e.split(` `).map(e=>n`<kbd>${e}</kbd>`)}</dt><dd>${t}</dd></div>`)}
    </dl>
    <label class="page-check"
      ><input type="checkbox" .checked=${t} @change=${e=>r(e.target.checked)} /> ${a(`singleKeys`)}</label
    >`;i(a(`shortcuts`),e,s,`page-keys-dialog`)}function s(e,t,a){let{t:o,locale:s,theme:c}=a,l=r({t:o,locale:s,theme:c}),u=n`<p class="arp-note">${o(`importedChat`)}</p>
    <div class="arp-log">${t.map(e=>n`<arp-message readonly .turn=${e} .context=${l}></arp-message>`)}</div>`;i(e||o(`importChat`),a,u,`page-imported`)}export{a as askForToken,i as openDialog,s as showImported,o as showKeys};