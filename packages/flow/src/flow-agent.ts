import {
  type Agent,
  type AssistantBlock,
  type CallOptions,
  type ContentBlock,
  type Input,
  type Message,
  MillraceError,
  textOf,
} from 'millrace';
import {
  checkOptions,
  defined,
  having,
  isFunction,
  isRecord,
  isText,
  type Rule,
  wholeNumber,
} from 'millrace/values';
import { asAgent, createStep } from 'millrace/teams';
import { defer, map } from 'rxjs';
import { compileGraph } from './compile.js';
import { initialVariables } from './components/set.js';
import { createReporters, createState } from './flow-state.js';
import { checkedDocument } from './problems-in.js';
import type { FlowResources } from './resources.js';
import { type GraphResult, joinOutputs, runGraph$ } from './run-graph.js';
import type { ConversationMessage, Scope } from './scope.js';
import { allComponents } from './template-problems.js';

type AgentOfSteps = NonNullable<Parameters<typeof asAgent>[1]>;

/** The resources that a document refers to, and the options of `asAgent`. */
export interface FlowOptions extends FlowResources, Omit<AgentOfSteps, 'name' | 'output'> {
  /** The maximum number of components of a graph that run concurrently. Default: 5. */
  readonly concurrency?: number | undefined;
}

/**
 * Creates an agent from a document. Throws one `config` error with all problems of the document. The agent supports
 * sessions, events, guards, interrupts and limits. Each component is a child call, named by its ID. The answer consists
 * of the messages in the order of the graph, separated by empty lines. If the answer of one agent component is the
 * whole answer, that agent streams as the flow itself. The state of its components and variables is in `stateChanged`
 * events named `flow`.
 */
export const flowAgent = (document: unknown, options: FlowOptions = {}): Agent => {
  const { models, tools, retrievers, code, mcp, http, secrets, human, ...others } = options;
  const { concurrency = 5, use = [], ...rest } = others;
  checkOptions('flowAgent()', options, rules);
  const resources = defined({ models, tools, retrievers, code, mcp, http, secrets, human });
  const { name, components, variables = {} } = checkedDocument(document, resources);
  const graph = compileGraph(components, { resources, variables, concurrency });
  const ids = allComponents(components).map(({ id }) => id);
  const reporters = createReporters();
  const step = createStep((_input, given) =>
    defer(() => {
      const initial = initialVariables(variables);
      const report = createState(ids, initial, reporters.of(given));
      return runGraph$(graph, { ...scopeOf(given), variables: initial, report });
    }).pipe(map((ran) => answerOf(name, ran))),
  );
  return asAgent(step, { ...rest, use: [reporters.layer, ...use], name });
};

const scopeOf = (options: CallOptions): Omit<Scope, 'variables' | 'report'> => {
  const { parent } = options;
  if (parent === undefined) {
    throw new MillraceError('invalidState', 'A flow can only run inside the call of its agent.');
  }
  const { callId, sessionId = '', messages, metadata } = parent;
  const isInput = ({ id }: Message): boolean => id.startsWith(`${callId}/input/`);
  // The words of other agents since the question.
  const isBeside = ({ id }: Message): boolean => id.startsWith(`given/${callId}/`);
  const input = messages.filter(isInput);
  return {
    sys: {
      query: input.map(textOf).join('\n'),
      sessionId,
      history: messages
        .filter((message) => !isInput(message) && !isBeside(message))
        .flatMap(toConversation),
      metadata,
    },
    input: messages.filter((it) => isInput(it) || isBeside(it)).flatMap(toConversation),
    outputs: new Map(),
    items: new Map(),
    options,
    streams: false,
    idPrefix: '',
  };
};

/** A message without tools and thinking. Assistant messages lose their name, because the flow speaks as one agent. */
const toConversation = (message: Message): readonly ConversationMessage[] => {
  if (message.role === 'tool') return [];
  const blocks: readonly AssistantBlock[] = message.content;
  const content = blocks.filter(isContent);
  if (content.length === 0) return [];
  if (message.role === 'assistant') return [{ role: 'assistant', content }];
  const { id, role, name } = message;
  const beside = id.startsWith('given/') && { id };
  return [{ role, content, ...beside, ...(name !== undefined && { name }) }];
};

const isContent = (block: AssistantBlock): block is ContentBlock =>
  block.type !== 'thinking' && block.type !== 'tool_call';

/** The reply of an agent component, if it is the whole answer; otherwise text. */
const answerOf = (name: string, ran: GraphResult): Input => {
  if (ran.status !== 'done') return { ...ran.reply, name };
  const output = joinOutputs(ran.outputs);
  if (output === undefined) {
    throw new MillraceError(
      'emptyAnswer',
      `The flow '${name}' has no answer: it reached no message component, or its messages are empty. Make every branch lead to a message, and add 'otherwise' to cover all other cases.`,
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

/** `asAgent` checks these options. */
const checkedByAgent: Rule = [() => true, ''];

const rules: Readonly<Record<keyof FlowOptions, Rule>> = {
  models: recordOf(having('stream$', '')[0], 'an object of models'),
  tools: [isTools, 'a list of tools'],
  retrievers: recordOf(having('retrieve$', '')[0], 'an object of retrievers'),
  code: recordOf(isFunction[0], 'an object of functions'),
  mcp: recordOf(isTools, 'an object of lists of tools'),
  http: [
    (value) => isRecord(value) && typeof value['fetch'] === 'function',
    'an object with fetch',
  ],
  secrets: recordOf(isText[0], 'an object of strings'),
  human: isFunction,
  concurrency: wholeNumber(1),
  context: checkedByAgent,
  use: checkedByAgent,
  request: checkedByAgent,
  limits: checkedByAgent,
};
