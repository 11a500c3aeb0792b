import {
  type Agent,
  type AssistantBlock,
  type CallOptions,
  type ContentBlock,
  type Input,
  type Message,
  MillraceError,
  textOf,
} from '@millrace/core';
import {
  checkOptions,
  defined,
  having,
  isFunction,
  isRecord,
  type Rule,
  wholeNumber,
} from '@millrace/core/adapter';
import { asAgent, createStep, type StepAgentOptions } from '@millrace/core/teams';
import { defer, map } from 'rxjs';
import { compileGraph } from './compile.js';
import { checkedDocument } from './problems-in.js';
import type { FlowResources } from './resources.js';
import { joined, type Ran, runGraph$ } from './run-graph.js';
import type { Scope, Spoken } from './scope.js';

/** What a flow is given: what its document names, and what any agent may have that is made of a step. */
export interface FlowOptions extends FlowResources, Omit<StepAgentOptions, 'name' | 'output'> {
  /** Components of a graph that run at once. Default: 5. */
  readonly concurrency?: number;
}

/**
 * Makes an agent of a document, or throws one `config` error that tells all that is wrong with it. It runs as any agent does: with sessions,
 * events, guards, interrupts and limits. Its components are calls below its own, by their ids. What its messages say is the answer, in the
 * order of the document, with an empty line between them; an agent whose answer is all that is said streams as the flow itself.
 */
export const flowAgent = (document: unknown, options: FlowOptions = {}): Agent => {
  const { models, tools, retrievers, code, mcp, concurrency = 5, ...rest } = options;
  checkOptions('flowAgent()', options, rules);
  const resources = defined({ models, tools, retrievers, code, mcp });
  const { name, components } = checkedDocument(document, resources);
  const graph = compileGraph(components, { resources, concurrency });
  const step = createStep((_input, given) =>
    defer(() => runGraph$(graph, scopeOf(given))).pipe(map((ran) => answerOf(name, ran))),
  );
  return asAgent(step, { ...rest, name });
};

/** What the first component finds. */
const scopeOf = (options: CallOptions): Scope => {
  const { parent } = options;
  if (parent === undefined) {
    throw new MillraceError('invalidState', 'A flow runs within the call of its agent only.');
  }
  const { callId, sessionId = '', messages, metadata } = parent;
  const isAsked = ({ id }: Message): boolean => id.startsWith(`${callId}/input/`);
  const asked = messages.filter(isAsked);
  return {
    sys: {
      query: asked.map(textOf).join('\n'),
      sessionId,
      history: messages.filter((message) => !isAsked(message)).flatMap(spoken),
      metadata,
    },
    asked: asked.flatMap(spoken),
    outputs: new Map(),
    items: new Map(),
    options,
    speaks: false,
    place: '',
  };
};

/** What people and agents have said in a message: without tools and thinking. Whoever of the flow has said it, it was the flow. */
const spoken = (message: Message): readonly Spoken[] => {
  if (message.role === 'tool') return [];
  const blocks: readonly AssistantBlock[] = message.content;
  const content = blocks.filter(isSpoken);
  if (content.length === 0) return [];
  if (message.role === 'assistant') return [{ role: 'assistant', content }];
  const { role, name } = message;
  return [{ role, content, ...(name !== undefined && { name }) }];
};

const isSpoken = (block: AssistantBlock): block is ContentBlock =>
  block.type !== 'thinking' && block.type !== 'tool_use';

/** The reply of an agent where it is all that was said, else a text. */
const answerOf = (name: string, ran: Ran): Input => {
  if (ran.status === 'ended') return { ...ran.reply, name };
  const output = joined(ran.said);
  if (output === undefined) {
    throw new MillraceError(
      'emptyAnswer',
      `The flow '${name}' has said nothing: no message was come by, or what they say is empty. Lead every way to a message, by 'otherwise' where nothing else holds.`,
    );
  }
  return output.reply === undefined ? output.text : { ...output.reply, name };
};

const isTools = (value: unknown): boolean =>
  Array.isArray(value) && value.every((it) => having('run$', '')[0](it) && isRecord(it));

const recordOf = (isFine: (value: unknown) => boolean, what: string): Rule => [
  (value) => isRecord(value) && Object.values(value).every(isFine),
  what,
];

/** What is the agent's is checked there. */
const ofAgent: Rule = [() => true, ''];

const rules: Readonly<Record<keyof FlowOptions, Rule>> = {
  models: recordOf(having('stream$', '')[0], 'an object of models'),
  tools: [isTools, 'a list of what tool() returns'],
  retrievers: recordOf(having('retrieve$', '')[0], 'an object of retrievers'),
  code: recordOf(isFunction[0], 'an object of functions'),
  mcp: recordOf(isTools, 'an object of lists of what tool() returns'),
  concurrency: wholeNumber(1),
  context: ofAgent,
  use: ofAgent,
  request: ofAgent,
  limits: ofAgent,
};
