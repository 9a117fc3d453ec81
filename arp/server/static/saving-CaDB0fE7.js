import{k as e}from"./drawing-COOceEeT.js";import{U as t,it as n,s as r}from"./page-CDd6qxm-.js";async function i(t,r,i,s,c){let{toJson:l,toMarkdown:u}=await n(async()=>{let{toJson:e,toMarkdown:t}=await import(`./export-zW_EYgd0.js`);return{toJson:e,toMarkdown:t}},[]),d={you:c(`you`),agent:c(`agent`),tool:c(`tool`),error:c(`error`),result:c(`toolResult`)};a(e(r||`chat`,t),new Blob([{md:()=>u(i,r,d),json:()=>l(i,r),html:()=>o(r,s,c)}[t]()],{type:{md:`text/markdown`,json:`application/json`,html:`text/html`}[t]}))}function a(e,t){let n=document.createElement(`a`);n.href=URL.createObjectURL(t),n.download=e,n.click(),setTimeout(()=>URL.revokeObjectURL(n.href),1e4)}function o(e,n,i){let a=n.cloneNode(!0);for(let e of a.querySelectorAll(`button, input, textarea, select, details.arp-menu, .arp-doing, .arp-typing`))e.remove();for(let e of a.querySelectorAll(`details`))e.setAttribute(`open`,``);for(let e of a.querySelectorAll(`img[src^='blob:']`))e.remove();let o=`${t}\n${r}\nbody{margin:0;background:var(--_arp-ground)}body>.arp-column{min-height:100vh}`,c=s(e);return`<!doctype html>
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
`}function s(e){return e.replaceAll(`&`,`&amp;`).replaceAll(`<`,`&lt;`).replaceAll(`"`,`&quot;`)}export{i as saveChat};