// Interceptors are operators on one event: they edit, delay or veto it.
import { createAgent, on, only, textBlock, textOf, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { demoModel } from '@millrace/demo-model';
import { delay, filter, map } from 'rxjs';

const email = tool({
  name: 'send_email',
  description: 'Sends an email to an address.',
  input: jsonSchema({
    type: 'object',
    properties: { to: { type: 'string', format: 'email', examples: ['ada@example.com'] } },
    required: ['to'],
  }),
  run: ({ to }) => `Sent to ${to}.`,
});

const onlyOurs = on(
  'preActing',
  filter(({ toolCall }) => String(toolCall.input['to']).endsWith('@example.com')),
  { name: 'only our addresses' },
);
const thinkTwice = on('preActing', delay(10), { priority: 200 });
const hideAddresses = on(
  'postCall',
  map((event) => {
    const text = textOf(event.reply).replaceAll(/\S+@\S+\w/g, '<address>');
    return { ...event, reply: { ...event.reply, content: [textBlock(text)] } };
  }),
);

const interceptors = [onlyOurs, thinkTwice, hideAddresses];
const agent = createAgent({ model: demoModel(), tools: [email], use: interceptors });

agent.events$.pipe(only('vetoed')).subscribe(({ name }) => console.log('vetoed by', name));
console.log(textOf(await agent.call('Send an email to ada@example.com.')));
console.log(textOf(await agent.call('Send an email to eve@evil.test.')));
