import{J as e,X as t,et as n,h as r,it as i}from"./page-CDd6qxm-.js";function a(n,i,a,o){let s=document.activeElement,c=document.createElement(`dialog`);c.className=`page-dialog arp ${o}`,c.dir=i.t.direction,c.lang=i.t.locale,c.setAttribute(`aria-labelledby`,`page-dialog-title`),e(t`<header>
        <h2 id="page-dialog-title" dir="auto">${n}</h2>
        <button type="button" class="arp-icon-button" aria-label=${i.t(`close`)} @click=${()=>c.close()}>${r(`close`)}</button>
      </header>
      <div class="page-dialog-body">${a}</div>`,c),c.addEventListener(`close`,()=>{c.remove(),s?.focus()}),c.addEventListener(`click`,e=>{e.target===c&&c.close()}),document.body.append(c),c.showModal()}function o(e,n){let{t:r}=e,i=t`<p>${r(`otherTokenAsked`)}</p>
    <div class="page-dialog-actions">
      <button type="button" class="arp-button" autofocus @click=${e=>e.currentTarget.closest(`dialog`)?.close()}>${r(`keepToken`)}</button>
      <button type="button" class="arp-button arp-quiet" @click=${n}>${r(`takeToken`)}</button>
    </div>`;a(r(`otherToken`),e,i,`page-token-dialog`)}function s(e,n,r){let{t:i}=e,o=[[`Enter`,i(`send`)],[`Shift Enter`,i(`newLine`)],[`Esc`,i(`stop`)],[`Alt ↑ ↓`,i(`moveBetweenMessages`)],[`F6`,i(`moveBetweenRegions`)],[`/`,i(`message`)],[`n`,i(`newChat`)],[`s`,i(`searchChats`)],[`?`,i(`shortcuts`)]],s=t`<dl class="page-keys">
      ${o.map(([e,n])=>t`<div><dt>${e.split(` `).map(e=>t`<kbd>${e}</kbd>`)}</dt><dd>${n}</dd></div>`)}
    </dl>
    <label class="page-check"
      ><input type="checkbox" .checked=${n} @change=${e=>r(e.target.checked)} /> ${i(`singleKeys`)}</label
    >`;a(i(`shortcuts`),e,s,`page-keys-dialog`)}async function c(e){let t=document.createElement(`input`);t.type=`file`,t.accept=`application/json,.json`;let n=new Promise(e=>{t.addEventListener(`change`,()=>e(t.files?.[0])),t.addEventListener(`cancel`,()=>e(void 0))});t.click();let r=await n;if(!r)return;let{fromJson:a}=await i(async()=>{let{fromJson:e}=await import(`./export-zW_EYgd0.js`);return{fromJson:e}},[]);i(()=>import(`./drawing-COOceEeT.js`).then(e=>e.t),[]);let{title:o,turns:s}=a(await r.text());l(o||r.name,s,e)}function l(e,r,i){let{t:o,locale:s,theme:c}=i,l=n({t:o,locale:s,theme:c}),u=t`<p class="arp-note">${o(`importedChat`)}</p>
    <div class="arp-log">${r.map(e=>t`<arp-message readonly .turn=${e} .context=${l}></arp-message>`)}</div>`;a(e||o(`importChat`),i,u,`page-imported`)}export{o as askForToken,c as importChat,a as openDialog,s as showKeys};