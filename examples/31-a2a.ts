// Two agents over A2A: a server with an agent of its own, and an agent that has it as a tool. The remote agent asks a question.
import { a2aTool } from '@millrace/a2a';
import { a2a } from '@millrace/a2a/server';
import { createAgent, isEvent, suspend, textOf, tool } from 'millrace';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { serve } from '@millrace/server/node';
import { firstValueFrom, ReplaySubject } from 'rxjs';

const ask = tool({ name: 'ask', description: 'Asks the user.', run: () => suspend('Which city?') });
const booking = createAgent({
  name: 'booking',
  model: scriptedModel([toolCall('ask')], [text('A room in Oslo '), text('is booked.')]),
  tools: [ask],
});
const url$ = new ReplaySubject<string>(1);
const serving = serve(booking, { port: 0, protocols: [a2a({ description: 'Books rooms.' })] });
const server = serving.subscribe(({ url }) => url$.next(url));

const remote = a2aTool(await firstValueFrom(url$), {
  name: 'booking',
  description: 'Books rooms.',
});
const model = scriptedModel(
  [toolCall('booking', { message: 'A room, please.' })],
  // A model reads the id in the result of the tool.
  ({ messages }) => {
    const result = JSON.stringify(messages.at(-1));
    const taskId = /taskId \W+(\w+)/.exec(result)?.[1];
    return [toolCall('booking', { message: 'Oslo', taskId })];
  },
  [text('Your room is booked.')],
);
for await (const event of createAgent({ model, tools: [remote] }).stream('I need a room.')) {
  if (isEvent(event, 'actingChunk')) console.log('progress:', JSON.stringify(event.value));
  if (isEvent(event, 'postActing')) console.log(textOf(event.result).split('\n')[0]);
  if (isEvent(event, 'postCall')) console.log(textOf(event.reply));
}
server.unsubscribe();
