// A deep agent that plans, lets two sub-agents edit one file at the same time, and gets a large result: `node packages/deep-agent/measure/millrace.mjs`.
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { textOf, tool } from 'millrace';
import { deepAgent } from '@millrace/deep-agent';
import { filesOnDisk } from '@millrace/deep-agent/disk';
import console from 'node:console';
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const edit = (oldText) =>
  toolCall('edit_file', { path: 'log.md', oldText, newText: oldText.toUpperCase() });
const scripts = {
  Compare: [
    [toolCall('create_plan', { goal: 'Compare.', steps: ['Research'] })],
    [toolCall('write_file', { path: 'log.md', content: 'rye\nwheat' })],
    ['one', 'two'].map((task) => toolCall('task', { agent: 'general', task }, task)),
    [toolCall('search')],
    [text('Done.')],
  ],
  one: [[edit('rye')], [text('ok')]],
  two: [[edit('wheat')], [text('ok')]],
};
const models = Object.fromEntries(
  Object.entries(scripts).map(([name, script]) => [name, scriptedModel(...script)]),
);
const model = {
  name: 'scripts',
  stream$: (request, context) => models[textOf(request.messages[0])].stream$(request, context),
};
const search = tool({ name: 'search', description: 'Searches.', run: () => 'x'.repeat(100_000) });
const root = mkdtempSync(join(tmpdir(), 'millrace-'));
const agent = deepAgent({ model, tools: [search], files: filesOnDisk(root) });
console.log(
  (await agent.call('Compare')).text,
  readFileSync(root + '/log.md', 'utf8').replace('\n', ' '),
);
