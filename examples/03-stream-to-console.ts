// One stream has everything that happens. A `for await` pulls: while its body is busy, the model waits.
import { createAgent, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { demoModel } from '@millrace/demo-model';
import { concatMap, from, of } from 'rxjs';

const upload = tool({
  name: 'upload',
  description: 'Uploads a file, such as photo.jpg, to the archive.',
  input: jsonSchema({
    type: 'object',
    properties: {
      file: { type: 'string', description: 'Name of the file', examples: ['photo.jpg'] },
    },
    required: ['file'],
  }),
  run: () => from([25, 50, 100]).pipe(concatMap((percent) => of({ percent }))),
});

const agent = createAgent({ name: 'archivist', model: demoModel(), tools: [upload] });

for await (const event of agent.stream('Upload cat.jpg to the archive.')) {
  switch (event.type) {
    case 'reasoningChunk':
      if (event.kind === 'text') process.stdout.write(event.delta);
      break;
    case 'preActing':
      console.log(`[${event.toolCall.name}]`, event.toolCall.input);
      break;
    case 'actingChunk':
      console.log(`[${event.toolCall.name}]`, event.value);
      break;
    case 'postCall':
      console.log(`\n[done] ${event.reply.toolCalls.length} tool, ${event.seq} events`);
  }
}
