<<<<<<<< HEAD:arp/server/static/drawn_text-BCEitQgL.js
import{C as e}from"./drawing-CXoBhsJA.js";var t=100,n=20;async function r(r,i){let a=`arp-message[data-turn="${CSS.escape(i.id)}"]`,o=[];for(let e=0;e<n&&(await new Promise(e=>setTimeout(e,t)),o=[...r.querySelectorAll(`${a} :is(arp-prose, .arp-author > [dir])`)],!o.every(e=>!e.busy));e+=1);return o.map(({textContent:e})=>e??``).join(`
========
import{w as e}from"./drawing-DJVPAuyr.js";var t=100,n=20;async function r(r,i){let a=`arp-message[data-turn="${CSS.escape(i.id)}"]`,o=[];for(let e=0;e<n&&(await new Promise(e=>setTimeout(e,t)),o=[...r.querySelectorAll(`${a} :is(arp-prose, .arp-author > [dir])`)],!o.every(e=>!e.busy));e+=1);return o.map(({textContent:e})=>e??``).join(`
>>>>>>>> 97557a4e (Programs of the v0.1 draft in Node against ours: server, hook, renderer; an empty done is accepted):arp/server/static/drawn_text-DGUTixdj.js
`)||e(i)}export{r as drawnText};