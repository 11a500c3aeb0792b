import { type Message, textBlock, toolUsesOf } from '../message.js';
import type { Model, ModelRequest } from '../model.js';
import type { Dialect, PromptNeeds } from './dialect.js';
import { historyIn } from './history.js';

/** Tells whether a request has to do with tools at all. */
export const hasTools = ({ tools = [], messages }: ModelRequest): boolean =>
  tools.length > 0 ||
  messages.some(
    (message) =>
      message.role === 'tool' || (message.role === 'assistant' && toolUsesOf(message).length > 0),
  );

/** What the prompt is made of. */
export const promptNeeds = ({
  tools = [],
  toolChoice,
  outputSchema,
}: ModelRequest): PromptNeeds => ({ tools, toolChoice, outputSchema });

/** Writes a request as one that any model can read: its tools and its history are texts. */
export const textRequest = (
  request: ModelRequest,
  dialect: Dialect,
  model: Pick<Model, 'unsupported'>,
): ModelRequest => {
  const { tools: _tools, toolChoice: _choice, outputSchema: _schema, ...rest } = request;
  const needs = promptNeeds(request);
  const { format, tools, choice, output } = dialect.prompts;
  const parts = needs.tools.length === 0 ? [output] : [format, tools, choice, output];
  const written = parts.map((part) => part(needs)).filter((part) => part !== '');
  const prompt = needs.tools.length === 0 ? written.join('\n\n') : dialect.prompt(written, needs);
  const asked = withPrompt(
    { ...rest, messages: historyIn(request.messages, dialect) },
    prompt,
    model,
  );
  return needs.tools.length === 0 ? asked : withStops(asked, dialect, model);
};

/** Writes a request without tools as one to a model that takes no schema for its answer. */
export const plainRequest = (
  request: ModelRequest,
  dialect: Dialect,
  model: Pick<Model, 'unsupported'>,
): ModelRequest => {
  const { tools: _tools, toolChoice: _choice, ...rest } = request;
  const { outputSchema, ...plain } = rest;
  if (outputSchema === undefined || model.unsupported?.includes('outputSchema') !== true) {
    return rest;
  }
  return withPrompt(plain, dialect.prompts.output(promptNeeds(request)), model);
};

const withStops = (
  request: ModelRequest,
  { stopSequences }: Dialect,
  { unsupported }: Pick<Model, 'unsupported'>,
): ModelRequest => {
  if (stopSequences.length === 0 || unsupported?.includes('stopSequences') === true) return request;
  const { stopSequences: own = [] } = request;
  // Some vendors take no more than four.
  const room = Math.max(0, 4 - own.length);
  const added = stopSequences.filter((it) => !own.includes(it)).slice(0, room);
  return { ...request, stopSequences: [...own, ...added] };
};

/** A model without system prompts reads the prompt before what the user says first. */
const withPrompt = (
  request: ModelRequest,
  prompt: string,
  { unsupported }: Pick<Model, 'unsupported'>,
): ModelRequest => {
  if (prompt === '') return request;
  if (unsupported?.includes('system') !== true) {
    const { system = '' } = request;
    return { ...request, system: system === '' ? prompt : `${system}\n\n${prompt}` };
  }
  const at = request.messages.findIndex(({ role }) => role === 'user');
  if (at === -1) {
    const told: Message = { id: 'prompt', role: 'user', content: [textBlock(prompt)] };
    return { ...request, messages: [told, ...request.messages] };
  }
  const told = request.messages.map((message, index): Message =>
    index === at && message.role === 'user'
      ? { ...message, content: [textBlock(`${prompt}\n\n`), ...message.content] }
      : message,
  );
  return { ...request, messages: told };
};
