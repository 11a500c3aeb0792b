import {createAgent,tool} from './dist/index.js'; import {textTools,linesDialect,actionDialect} from './dist/text-tools/index.js'; import {scriptedModel,text,record} from './dist/testing/index.js';
const lookup = tool({name:'lookup',description:'d',input:{type:'object',properties:{city:{type:'string'}},required:['city']},run:({city})=>`found ${city}`});
for (const d of [linesDialect(),actionDialect()]) for (const said of process.argv.slice(2)) {
 const m=scriptedModel([text(said)],[text('Final Answer: x')],[text('Final Answer: x')],[text('Final Answer: x')]);
 try { const ev=await record(createAgent({model:textTools(m,d),tools:[lookup]}).stream$('?'));
 console.log(JSON.stringify(said), ev.filter(e=>['postActing','messageDiscarded','repaired'].includes(e.type)).map(e=>e.type+' '+(e.toolRun?.output??e.why??e.result?.content?.[0]?.text??'')), JSON.stringify(m.requests[1]?.messages.at(-1)?.content?.[0]?.text??m.requests[1]?.messages.at(-1)?.content).slice(0,300), JSON.stringify(ev.at(-1).reply?.content??ev.at(-1).error?.message)); } catch(e){console.log(said,'ERR',e.message)}
}
