// A busy session: calls wait in its queue, and what is said to the running one is in its next turn.
import { createAgent, textOf, tool } from 'millrace';
import { sessions } from 'millrace/sessions';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { timer } from 'rxjs';

const search = tool({ name: 'search', description: 'Searches.', run: () => timer(20) });

const model = scriptedModel(
  [toolCall('search')],
  (request) => [text(`You asked: ${request.messages.map(textOf).filter(Boolean).join(' ')}`)],
  [text('You are welcome.')],
);
const chat = sessions(createAgent({ model, tools: [search] }), { onBusy: 'queue' }).open('user-42');

chat.queue.calls$.subscribe((calls) => console.log('waiting:', calls.length));
const first = chat.call('Find me a mill.');
const second = chat.call('Thank you!');
console.log(await chat.steer('A water mill, please.'));

console.log(textOf(await first));
console.log(textOf(await second));
