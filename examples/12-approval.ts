// People decide: whether a tool runs and with what input, or in their own time, while nothing runs.
import { createAgent, requireApproval, suspend, textOf, tool, toolResults } from 'millrace';
import { sessions } from 'millrace/sessions';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { map, timer } from 'rxjs';
import { z } from 'zod';

// Stands for a person, who takes a moment: nobody gets more than 100 euros, and Eve gets nothing.
const payment = z.object({ to: z.string(), euros: z.number().positive() });
const decide = ({ to, euros }: z.infer<typeof payment>) =>
  to === 'Eve'
    ? { approved: false, reason: 'We owe Eve nothing.' }
    : { approved: true, input: { to, euros: Math.min(euros, 100) } };

const pay = tool({
  name: 'pay',
  description: 'Pays somebody.',
  input: payment,
  run: ({ to, euros }) => `${to} has got ${euros} euros.`,
});
const asked = requireApproval(pay, ({ value }) => timer(10).pipe(map(() => decide(value))));
const sign = tool({
  name: 'sign',
  description: 'Has it signed.',
  run: () => suspend({ by: 'Ada' }, { from: 'program' }),
});

const model = scriptedModel(
  [toolCall('pay', { to: 'Bob', euros: 500 }), toolCall('pay', { to: 'Eve', euros: 5 })],
  [toolCall('sign')],
  [text('Paid what we owe, and signed.')],
);
const session = sessions(createAgent({ model, tools: [asked, sign] })).open('office');
const { reason, toolCalls, suspensions = [] } = await session.call('Pay Bob and Eve, then sign.');
for (const { name, input, output } of toolCalls) console.log(name, input, '→', output);
for (const { toolCall: pending, request } of suspensions) {
  console.log(`${reason}:`, request);
  console.log(textOf(await session.call(toolResults({ [pending.id]: 'Signed by Ada.' }))));
}
