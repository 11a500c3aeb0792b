/** An event of a chat completion that is streamed (https://platform.openai.com/docs/api-reference/chat-streaming). */
const event = (delta: unknown, finish: string | null = null): string =>
  `data: ${JSON.stringify({
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 0,
    model: 'loopback',
    choices: [{ index: 0, delta, finish_reason: finish }],
  })}\n\n`;

/** A delta of text. */
export const textEvent = (content: string): string => event({ content });

/** The end of an answer. */
export const lastEvents = `${event({}, 'stop')}data: [DONE]\n\n`;

/** A whole answer of a few words. */
export const shortEvents = `${textEvent('All ')}${textEvent('done.')}${lastEvents}`;

/** A whole answer that asks for one use of the tool `wait`. */
export const toolCallEvents = `${event({
  tool_calls: [
    { index: 0, id: 'use-1', type: 'function', function: { name: 'wait', arguments: '{}' } },
  ],
})}${event({}, 'tool_calls')}data: [DONE]\n\n`;
