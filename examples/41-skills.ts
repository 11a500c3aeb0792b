// Skills: the model sees names and descriptions, and reads the instructions of the skill that fits its task.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAgent, only, tool } from 'millrace';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { skills } from '@millrace/skills';
import { skillsFolder } from '@millrace/skills/folder';

const folder = mkdtempSync(join(tmpdir(), 'millrace-'));
mkdirSync(join(folder, 'refunds'));
writeFileSync(
  join(folder, 'refunds/SKILL.md'),
  `---
name: refunds
description: How to refund an order. Use it if a customer wants money back.
allowed-tools: find_order
---
Find the order. Then read limits.md, and promise nothing above the limit.
`,
);
writeFileSync(join(folder, 'refunds/limits.md'), 'Up to 100 EUR without a person.');

const findOrder = tool({ name: 'find_order', description: 'Finds an order.', run: () => '80 EUR' });
const pay = tool({ name: 'pay', description: 'Pays money out.', run: () => 'Paid.' });
const model = scriptedModel(
  [toolCall('read_skill', { name: 'refunds' })],
  [toolCall('find_order'), toolCall('read_skill', { name: 'refunds', path: 'limits.md' })],
  [toolCall('pay')], // not allowed while the skill is active
  [text('You will get 80 EUR.')],
);
const agent = createAgent({ model, tools: [findOrder, pay], use: [skills(skillsFolder(folder))] });
agent.events$.pipe(only('skillLoaded')).subscribe(({ skill, path }) => console.log(skill, path));
const { toolCalls, text: answer } = await agent.call('I want my money back.');
console.log(model.requests[0]?.system);
for (const { name, output } of toolCalls) console.log(name, '→', output);
console.log(answer);
rmSync(folder, { recursive: true });
