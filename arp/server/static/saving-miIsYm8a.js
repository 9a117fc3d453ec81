import{H as e,rt as t,s as n}from"./page-CuYI87Fs.js";async function r(e,n,r,s,c){let{toJson:l,toMarkdown:u}=await t(async()=>{let{toJson:e,toMarkdown:t}=await import(`./export-uZAwVaOt.js`);return{toJson:e,toMarkdown:t}},[]),d={you:c(`you`),agent:c(`agent`),tool:c(`tool`),error:c(`error`),result:c(`toolResult`)};i(`${a(n)}.${e}`,new Blob([{md:()=>u(r,n,d),json:()=>l(r,n),html:()=>o(n,s,c)}[e]()],{type:{md:`text/markdown`,json:`application/json`,html:`text/html`}[e]}))}function i(e,t){let n=document.createElement(`a`);n.href=URL.createObjectURL(t),n.download=e,n.click(),setTimeout(()=>URL.revokeObjectURL(n.href),1e4)}function a(e){return e.replace(/[\\/:*?"<>|\p{C}]+/gu,` `).trim().slice(0,80)||`chat`}function o(t,r,i){let a=r.cloneNode(!0);for(let e of a.querySelectorAll(`button, input, textarea, select, details.arp-menu, .arp-doing, .arp-typing`))e.remove();for(let e of a.querySelectorAll(`details`))e.setAttribute(`open`,``);for(let e of a.querySelectorAll(`img[src^='blob:']`))e.remove();let o=`${e}\n${n}\nbody{margin:0;background:var(--_arp-ground)}body>.arp-column{min-height:100vh}`,c=s(t);return`<!doctype html>
<html lang="${s(i.locale)}" dir="${i.direction}">
<head>
<meta charset="utf-8">
<meta http-equiv="content-security-policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="viewport" content="width=device-width">
<title>${c}</title>
<style>${o.replaceAll(`<`,`\\3c `)}</style>
</head>
<body class="arp">
<main class="arp-column"><h1 class="arp-title">${c}</h1>${a.outerHTML}</main>
</body>
</html>
`}function s(e){return e.replaceAll(`&`,`&amp;`).replaceAll(`<`,`&lt;`).replaceAll(`"`,`&quot;`)}export{r as saveChat};