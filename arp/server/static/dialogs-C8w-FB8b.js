import{Z as e,at as t,et as n,nt as r}from"./page-B0cnYh4u.js";function i(t,i,a,o){let s=document.activeElement,c=document.createElement(`dialog`);c.className=`page-dialog arp ${o}`,c.dir=i.t.direction,c.lang=i.t.locale,c.setAttribute(`aria-labelledby`,`page-dialog-title`),n(r`<header>
        <h2 id="page-dialog-title" dir="auto">${t}</h2>
        <button type="button" class="arp-icon-button" aria-label=${i.t(`close`)} @click=${()=>c.close()}>${e(`cross`)}</button>
      </header>
      <div class="page-dialog-body">${a}</div>`,c),c.addEventListener(`close`,()=>{c.remove(),s?.focus()}),c.addEventListener(`click`,e=>{e.target===c&&c.close()}),document.body.append(c),c.showModal()}function a(e,t){let{t:n}=e,a=r`<p>${n(`otherTokenAsked`)}</p>
    <div class="page-dialog-actions">
      <button type="button" class="arp-button" autofocus @click=${e=>e.currentTarget.closest(`dialog`)?.close()}>${n(`keepToken`)}</button>
      <button type="button" class="arp-button arp-quiet" @click=${t}>${n(`takeToken`)}</button>
    </div>`;i(n(`otherToken`),e,a,`page-token-dialog`)}function o(e,t,n){let{t:a}=e,o=[[`Enter`,a(`send`)],[`Shift Enter`,a(`newLine`)],[`Esc`,a(`stop`)],[`Alt ↑ ↓`,a(`moveBetweenMessages`)],[`F6`,a(`moveBetweenRegions`)],[`/`,a(`message`)],[`n`,a(`newChat`)],[`s`,a(`searchChats`)],[`?`,a(`shortcuts`)]],s=r`<dl class="page-keys">
      ${o.map(([e,t])=>r`<div><dt>${e.split(` `).map(e=>r`<kbd>${e}</kbd>`)}</dt><dd>${t}</dd></div>`)}
    </dl>
    <label class="page-check"
      ><input type="checkbox" .checked=${t} @change=${e=>n(e.target.checked)} /> ${a(`singleKeys`)}</label
    >`;i(a(`shortcuts`),e,s,`page-keys-dialog`)}function s(e,n,a){let{t:o,locale:s,theme:c}=a,l=t({t:o,locale:s,theme:c}),u=r`<p class="arp-note">${o(`importedChat`)}</p>
    <div class="arp-log">${n.map(e=>r`<arp-message readonly .turn=${e} .context=${l}></arp-message>`)}</div>`;i(e||o(`importChat`),a,u,`page-imported`)}export{a as askForToken,i as openDialog,s as showImported,o as showKeys};