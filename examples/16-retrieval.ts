// Passages of documents for the model to cite, and the citations of its answer.
import { createAgent, textOf } from 'millrace';
import { citationsIn, retrieve } from 'millrace/retrieval';
import { scriptedModel, text } from 'millrace/testing';
import { documentRetriever, markdownFiles } from '@millrace/tools';

const documents = new URL('../../docs/', import.meta.url);
const retriever = documentRetriever({ load: markdownFiles(documents.pathname) });
// Stands for a language model: it cites the first passage that it is shown.
const model = scriptedModel(({ system = '' }) => [
  text(
    `Unsubscribe, or emit on \`interruptOn\` [1]. I was shown ${system.length > 500 ? 'passages' : 'nothing'}.`,
  ),
]);
const agent = createAgent({
  model,
  instructions: 'Answer from the passages, and cite them by their numbers.',
  use: [retrieve(retriever, { limit: 3 })],
});

const reply = await agent.call('How do I stop an agent?');
console.log(textOf(reply));
for (const { number, passage } of citationsIn(textOf(reply), reply.sources ?? []).cited) {
  console.log(`[${number}] ${passage.source}: ${passage.title ?? ''}`);
}
