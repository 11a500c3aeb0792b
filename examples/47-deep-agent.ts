// A deep agent keeps a plan, gives research to a sub-agent, runs code on the files that both share, and writes a report.
import { only, textOf, tool } from 'millrace';
import { isPlan, planText } from 'millrace/planning';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { deepAgent, filesInMemory } from '@millrace/deep-agent';
import { javaScript } from '@millrace/deep-agent/sandbox';
import { firstValueFrom } from 'rxjs';

// 4,000 lines are too long for the conversation: they are moved to a file.
const lines = Array.from({ length: 4_000 }, (_, day) => `${day},${(day * 7) % 13}`);
const log = tool({ name: 'log', description: 'Turns by day.', run: () => lines.join('\n') });

const files = javaScript(filesInMemory());
const code = `const [path] = await tools.list_files();
const days = (await tools.read_file({ path })).text.split('\\n');
return days.reduce((sum, day) => sum + Number(day.split(',')[1]), 0) / days.length;`;
const researcher = scriptedModel(
  [toolCall('log', {}, 'log-1')],
  [toolCall('run_code', { code })],
  [text('The wheel turns 6.00 times a day.')],
);
const model = scriptedModel(
  [toolCall('create_plan', { goal: 'Report on the wheel.', steps: ['Research'] })],
  [toolCall('task', { agent: 'researcher', task: 'How often does the wheel turn in a day?' })],
  [toolCall('update_step', { step: 1, status: 'done', outcome: '6.00' })],
  [toolCall('write_file', { path: 'report.md', content: '# The wheel\n\n6.00 turns a day.' })],
  [text('The report is in report.md.')],
);
const agents = [
  { name: 'researcher', description: 'Reads logs.', model: researcher, tools: [log] },
];
const agent = deepAgent({ name: 'miller', model, files, agents });
agent.events$.pipe(only('postActing')).subscribe((event) => {
  console.log(event.agent.at(-1), event.toolCall.name, '→', textOf(event.result).split(/[:\n]/)[0]);
});
agent.events$
  .pipe(only('stateChanged'))
  .subscribe(({ state }) => isPlan(state) && console.log(planText(state)));
console.log((await agent.call('Write a report on the wheel.', { callId: 'c' })).text);
console.log(await firstValueFrom(files.list$()), await firstValueFrom(files.read$('report.md')));
