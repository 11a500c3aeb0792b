// The names of the GenAI semantic conventions. They are developed in a repository of their own, without a release so
// far, so there is no schema URL to report. The npm package of the conventions has deprecated its constants for them.

/** The name of the instrumentation scope. */
export const scopeName = '@millrace/otel';

/** The version of this package. */
export const scopeVersion = '0.1.0';

export const operations = {
  call: 'invoke_agent',
  request: 'chat',
  tool: 'execute_tool',
} as const;

export const keys = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  conversationId: 'gen_ai.conversation.id',
  agentName: 'gen_ai.agent.name',
  requestModel: 'gen_ai.request.model',
  temperature: 'gen_ai.request.temperature',
  maxTokens: 'gen_ai.request.max_tokens',
  stopSequences: 'gen_ai.request.stop_sequences',
  stream: 'gen_ai.request.stream',
  outputType: 'gen_ai.output.type',
  finishReasons: 'gen_ai.response.finish_reasons',
  timeToFirstChunk: 'gen_ai.response.time_to_first_chunk',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  cacheReadTokens: 'gen_ai.usage.cache_read.input_tokens',
  cacheWriteTokens: 'gen_ai.usage.cache_creation.input_tokens',
  tokenType: 'gen_ai.token.type',
  toolName: 'gen_ai.tool.name',
  toolType: 'gen_ai.tool.type',
  toolCallId: 'gen_ai.tool.call.id',
  errorType: 'error.type',
  // Content, which is only set if the option asks for it.
  systemInstructions: 'gen_ai.system_instructions',
  inputMessages: 'gen_ai.input.messages',
  outputMessages: 'gen_ai.output.messages',
  toolArguments: 'gen_ai.tool.call.arguments',
  toolResult: 'gen_ai.tool.call.result',
  // The conventions have no names for these.
  callId: 'millrace.call.id',
  rootId: 'millrace.root.id',
  parentId: 'millrace.parent.id',
  agentPath: 'millrace.agent.path',
  reason: 'millrace.reply.reason',
  iterations: 'millrace.reply.iterations',
  cost: 'millrace.cost.total',
  costAtLeast: 'millrace.cost.at_least',
  costCurrency: 'millrace.cost.currency',
  step: 'millrace.step.id',
  attempt: 'millrace.request.attempt',
  cut: 'millrace.cut',
  suspended: 'millrace.suspended',
  resumed: 'millrace.resumed',
  forkedFrom: 'millrace.forked_from',
  link: 'millrace.link',
  queue: 'millrace.queue',
} as const;

const upToMinutes = [
  0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
];

interface Instrument {
  readonly name: string;
  readonly unit: string;
  readonly description: string;
}

/** The histograms, with the bucket boundaries that the conventions advise. */
export const histograms = {
  callDuration: {
    name: 'gen_ai.invoke_agent.duration',
    unit: 's',
    description: 'Duration of calls.',
    boundaries: [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6],
  },
  requestDuration: {
    name: 'gen_ai.client.operation.duration',
    unit: 's',
    description: 'Duration of requests.',
    boundaries: upToMinutes,
  },
  timeToFirstChunk: {
    name: 'gen_ai.client.operation.time_to_first_chunk',
    unit: 's',
    description: 'Time to the first chunk.',
    boundaries: upToMinutes,
  },
  tokens: {
    name: 'gen_ai.client.token.usage',
    unit: '{token}',
    description: 'Tokens of requests.',
    boundaries: Array.from({ length: 14 }, (_, power) => 4 ** power),
  },
  toolDuration: {
    name: 'gen_ai.execute_tool.duration',
    unit: 's',
    description: 'Duration of tools.',
    boundaries: upToMinutes,
  },
  queueDuration: {
    name: 'millrace.queue.duration',
    unit: 's',
    description: 'Waits for a slot.',
    boundaries: upToMinutes,
  },
} as const satisfies Readonly<
  Record<string, Instrument & { readonly boundaries: readonly number[] }>
>;

/** The counters. */
export const counters = {
  errors: {
    name: 'millrace.errors',
    unit: '{error}',
    description: 'Failed calls, requests and tools.',
  },
} as const satisfies Readonly<Record<string, Instrument>>;
