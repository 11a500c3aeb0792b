// A model that draws, and tools that speak and listen. The server stands for an OpenAI-compatible endpoint.
import { serve } from '@hono/node-server';
import { type AudioBlock, createAgent, isEvent, type ToolContext } from 'millrace';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { openrouter, profiles } from '@millrace/openai';
import { anyMedia, textToSpeech, transcription } from '@millrace/openai/media';
import { Hono } from 'hono';

const url = 'data:image/png;base64,iVBORw0KGgo=';
const message = { content: 'A mill.', images: [{ type: 'image_url', image_url: { url } }] };
const app = new Hono()
  .post('/v1/chat/completions', (c) => c.json({ choices: [{ message, finish_reason: 'stop' }] }))
  .post('/v1/audio/speech', (c) => c.body('sound', 200, { 'content-type': 'audio/mpeg' }))
  .post('/v1/audio/transcriptions', (c) => c.json({ text: 'Hi!' }));

const recorded = ({ messages }: ToolContext): readonly AudioBlock[] =>
  messages
    .flatMap((entry) => (entry.role === 'tool' ? entry.content : []))
    .flatMap(({ content }) => content.filter((block) => block.type === 'audio'));

const main = async (port: number): Promise<void> => {
  const at = { apiKey: 'sk-test', baseURL: `http://127.0.0.1:${port}/v1` };
  const painter = openrouter('google/gemini-2.5-flash-image', { ...at, media: anyMedia });
  console.log((await createAgent({ model: painter }).call('Draw a mill.')).content);

  const speak = textToSpeech(profiles.openai, 'gpt-4o-mini-tts', { ...at, voice: 'coral' });
  const load$ = (_: string, context: ToolContext) => recorded(context);
  const transcribe = transcription(profiles.openai, 'whisper-1', { ...at, load$ });
  const says = toolCall('speak', { text: 'Hi!' });
  const listens = toolCall('transcribe', { recording: 'the last one' });
  const model = scriptedModel([says], [listens], [text('Done.')]);
  const agent = createAgent({ model, tools: [speak, transcribe] });
  for await (const event of agent.stream('Say hi, and check it.')) {
    if (isEvent(event, 'postActing')) console.log(event.toolCall.name, event.result.content);
  }
  server.close();
};
const address = { hostname: '127.0.0.1', port: 0 };
const server = serve({ fetch: app.fetch, ...address }, ({ port }) => void main(port));
