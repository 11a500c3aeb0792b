// Long-term memory from conversations: a second model extracts facts in the background, and a new fact replaces the old one.
import { createAgent, textOf } from 'millrace';
import {
  inProcessLongTermMemory,
  withLongTermMemory,
  extractMemories,
} from 'millrace/long-term-memory';
import { sessions } from 'millrace/sessions';
import { scriptedModel, text } from 'millrace/testing';
import { lastValueFrom } from 'rxjs';

// Stands for a small language model. Each operation quotes the words of the user that it is based on.
const home = (city: string, quote: string) => {
  const fact = { op: 'add', text: `Lives in ${city}.`, attribute: 'home city' };
  return [text(JSON.stringify({ operations: [{ ...fact, sources: ['m1'], quote }] }))];
};
const small = scriptedModel(home('Paris', 'I live in Paris'), home('Berlin', 'moved to Berlin'));
// To persist memories: `memory: openSqlite('./memory.db').longTermMemory` of @millrace/store/sqlite.
const extraction = extractMemories({ model: small, memory: inProcessLongTermMemory() });
extraction.events$.subscribe((event) => {
  if (event.type !== 'memoriesExtracted') return;
  console.log(`${event.added.length} added, ${event.updated.length} updated`);
});

// Stands for a language model: it reads the recalled memory.
const model = scriptedModel([text('Nice!')], [text('How is it?')], ({ messages }) => [
  text(/^> (.*)/mu.exec(messages.map(textOf).join('\n'))?.[1] ?? 'I do not know.'),
]);
const { facts: memory } = extraction;
const ann = { metadata: { userId: 'ann' } };
const chats = sessions(createAgent(withLongTermMemory({ model, use: [extraction] }, { memory })));
for (const asked of ['Hi, I live in Paris.', 'I have moved to Berlin.']) {
  await chats.open(asked).call(asked, ann);
  await lastValueFrom(extraction.flush$(), { defaultValue: undefined }); // else it waits until the user is quiet
}
console.log((await chats.open('later').call('Where do I live?', ann)).text);
const [before] = await lastValueFrom(extraction.history$({ userId: 'ann' }));
console.log('Before:', before?.text);
extraction.close();
