/**
 * A string with references such as `{{sys.query}}`, `{{var.name}}` and `{{component@output}}`, which are resolved at run
 * time.
 */
export type TemplateText = string;

/** A flow as JSON, which `schema.json` describes. */
export interface FlowDocument {
  readonly version: 1;
  /** The name of the agent. */
  readonly name: string;
  readonly description?: string;
  /** The variables of a call by name: a letter, then letters, digits and `_`, up to 64 characters. */
  readonly variables?: Readonly<Record<string, FlowVariable>>;
  readonly components: FlowComponents;
}

/** A value that `set` components change, and templates read as `{{var.name}}`. Each call starts with its default. */
export interface FlowVariable {
  readonly type: VariableType;
  /** Default: `''`, 0, `false`, `{}` or `[]`. */
  readonly default?: unknown;
  readonly description?: string;
}

export const variableTypes = ['string', 'number', 'boolean', 'object', 'array'] as const;

export type VariableType = (typeof variableTypes)[number];

/** Components by ID: a letter, then letters, digits, `_`, `-` and `:`, up to 64 characters, unique in a document. */
export type FlowComponents = Readonly<Record<string, FlowComponent>>;

/** The params of each kind of component. */
export interface FlowParams {
  begin: Readonly<Record<string, never>>;
  agent: AgentParams;
  retrieval: RetrievalParams;
  switch: SwitchParams;
  categorize: CategorizeParams;
  iterate: IterateParams;
  message: MessageParams;
  code: CodeParams;
  tool: ToolParams;
  loop: LoopParams;
  human: HumanParams;
  http: HttpParams;
  set: SetParams;
}

export type ComponentName = keyof FlowParams;

/** A component of one kind. A link may be defined at either end, or at both. */
export interface ComponentOf<Name extends ComponentName> {
  readonly component_name: Name;
  readonly params: FlowParams[Name];
  /** The components before it. It runs when all of them have settled, if at least one has continued with it. */
  readonly upstream?: readonly string[];
  readonly downstream?: readonly string[];
}

/** One step of a flow. */
export type FlowComponent =
  | { readonly [Name in Exclude<ComponentName, 'begin'>]: ComponentOf<Name> }[Exclude<
      ComponentName,
      'begin'
    >]
  | (Omit<ComponentOf<'begin'>, 'params'> & Partial<Pick<ComponentOf<'begin'>, 'params'>>);

/**
 * How to handle a failed component, instead of failing the flow. `{{id@error.code}}` and `{{id@error.message}}` have the
 * code of the error and its message for end users, `{{id@error.status}}` the HTTP status, if there is one.
 */
export interface OnError {
  /** The output of the failed component. Default: `''`. */
  readonly value?: TemplateText;
  /** The next components, instead of the usual ones. */
  readonly to?: readonly string[];
}

/** How to repeat a failed request or run of a component, before its error counts. */
export interface FlowRetry {
  /** The maximum number of repetitions. */
  readonly times: number;
  /** The delay before the first one, in milliseconds; it doubles each time. Default: 1,000. */
  readonly delay_ms?: number;
}

/** Calls a model, perhaps with tools. Its output is the text of the answer, or a value that matches `output`. */
export interface AgentParams {
  /** A key of `models`. */
  readonly llm_id: string;
  readonly sys_prompt?: TemplateText;
  /** The input of the agent; empty messages are left out. Default: the input of the flow. */
  readonly prompts?: readonly FlowPrompt[];
  /** The number of earlier messages of the conversation that it sees. Default: 0. */
  readonly message_history_window_size?: number;
  /** The maximum number of model requests. Default: 10. */
  readonly max_rounds?: number;
  /** Names of tools. */
  readonly tools?: readonly string[];
  /** Keys of `mcp`: all tools of these servers. */
  readonly mcp?: readonly string[];
  /** The JSON Schema of the answer, which must be an object. Patterns are not allowed. */
  readonly output?: Readonly<Record<string, unknown>>;
  readonly temperature?: number;
  readonly max_tokens?: number;
  readonly retry?: FlowRetry;
  readonly on_error?: OnError;
}

export interface FlowPrompt {
  readonly role: 'user' | 'assistant';
  readonly content: TemplateText;
}

/** Retrieves passages. Its output is numbered text for a model to cite; a path into it accesses the passages. */
export interface RetrievalParams {
  /** A key of `retrievers`. */
  readonly retriever_id: string;
  /** Default: `{{sys.query}}`. */
  readonly query?: TemplateText;
  /** The maximum number of passages. Default: 5. */
  readonly top_n?: number;
  readonly retry?: FlowRetry;
  readonly on_error?: OnError;
}

/** Continues with the first case that matches. */
export interface SwitchParams {
  readonly cases: readonly SwitchCase[];
  /** The next components if no case matches. Default: none. */
  readonly otherwise?: readonly string[];
}

/** One branch of a switch. */
export interface SwitchCase {
  readonly conditions: readonly SwitchCondition[];
  /** Whether all conditions must be true, or one. Default: `and`. */
  readonly logic?: 'and' | 'or';
  readonly to: readonly string[];
}

/** Comparisons ignore case and surrounding white space. Order comparisons are false unless both are numbers. */
export const operators = [
  'contains',
  'not contains',
  'equals',
  'not equals',
  'starts with',
  'ends with',
  'is empty',
  'is not empty',
  '>',
  '<',
  '≥',
  '≤',
  '>=',
  '<=',
] as const;

export type SwitchOperator = (typeof operators)[number];

/** Compares two strings, or tests one for emptiness. */
export interface SwitchCondition {
  readonly value: TemplateText;
  readonly operator: SwitchOperator;
  /** The other side of the comparison. */
  readonly operand?: TemplateText;
}

/** Lets a model choose a category. Its output is the name of the category. */
export interface CategorizeParams {
  /** A key of `models`. */
  readonly llm_id: string;
  /** The text to classify. Default: `{{sys.query}}`. */
  readonly query?: TemplateText;
  readonly categories: Readonly<Record<string, FlowCategory>>;
  /** The next components if the model chooses no category. Default: an error. */
  readonly otherwise?: readonly string[];
  readonly retry?: FlowRetry;
  readonly on_error?: OnError & { readonly to: readonly string[] };
}

export interface FlowCategory {
  /** Describes the category to the model. */
  readonly description: string;
  readonly examples?: readonly string[];
  readonly to: readonly string[];
}

/** Runs components for each item of a list. Its output is the list of their messages. */
export interface IterateParams {
  /** A JSON array, or text to split. */
  readonly items: TemplateText;
  /** The delimiter of text that is not a JSON array. Default: line breaks. */
  readonly delimiter?: string;
  /** The maximum number of items; the rest is left out. Default: 20. */
  readonly max_items?: number;
  /** The number of items that run concurrently. Default: 1. */
  readonly concurrency?: number;
  /** The separator of the outputs if they are used as text. Default: an empty line. */
  readonly separator?: string;
  /** A separate graph, in which `{{id@item}}` is the item and `{{id@index}}` its number, from 1. */
  readonly components: FlowComponents;
  readonly on_error?: OnError;
}

/** Adds text to the answer of the flow, or to the output of an item. */
export interface MessageParams {
  readonly content: TemplateText;
}

/** Calls a function of the program. Its output is the return value. */
export interface CodeParams {
  /** A key of `code`. */
  readonly function: string;
  /** The argument of the function. A template that is a single reference becomes the value itself. Default: `{}`. */
  readonly input?: Readonly<Record<string, unknown>>;
  readonly retry?: FlowRetry;
  readonly on_error?: OnError;
}

/** Runs a tool, like a tool call of a model. Its output is the text of the result. */
export interface ToolParams {
  /** The name of a tool. */
  readonly tool: string;
  /** The input of the tool. A template that is a single reference becomes the value itself. Default: `{}`. */
  readonly input?: Readonly<Record<string, unknown>>;
  readonly retry?: FlowRetry;
  readonly on_error?: OnError;
}

/** Repeats components until a condition is true. Its output is that of the last round. */
export interface LoopParams {
  /** The maximum number of rounds, up to 100. */
  readonly max_rounds: number;
  /** Ends the loop after a round in which this is true. May refer to the components of the round. Default: never. */
  readonly until?: Pick<SwitchCase, 'conditions' | 'logic'>;
  /**
   * A separate graph, in which `{{id@index}}` is the number of the round, from 1, `{{id@previous.draft}}` the output of
   * its component `draft` in the round before (after the loop: in the last one), and `{{id@rounds.0.draft}}` that in the first round.
   */
  readonly components: FlowComponents;
  readonly on_error?: OnError;
}

/**
 * Asks a person. Its output is the answer: a string, or an object if it has `fields`. If the program has no `human`
 * resource, the call ends with the reason `suspended`.
 */
export interface HumanParams {
  /** The question that the person reads. */
  readonly message: TemplateText;
  /** The possible answers. Default: any text. */
  readonly choices?: readonly string[];
  /** A form to fill in, instead of one answer. */
  readonly fields?: Readonly<Record<string, HumanField>>;
  /** The maximum time to wait, in milliseconds. Default: 24 days. */
  readonly timeout_ms?: number;
  readonly on_error?: OnError;
}

export const fieldTypes = ['text', 'number', 'boolean', 'choice'] as const;

/** One field of a form. */
export interface HumanField {
  readonly type: (typeof fieldTypes)[number];
  readonly label?: string;
  /** The possible values of a `choice`. */
  readonly choices?: readonly string[];
  /** Default: true. */
  readonly required?: boolean;
}

export const httpMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

export type HttpMethod = (typeof httpMethods)[number];

/**
 * Sends an HTTP request with the `http` resource. Its output is the body of the response, as a value if it is JSON. A
 * status other than 2xx is an error. `{{secret.NAME}}` is allowed in `url`, `headers` and `body`.
 */
export interface HttpParams {
  /** Inserted values are percent-encoded, unless the URL starts with one. */
  readonly url: TemplateText;
  /** Default: `GET`. */
  readonly method?: HttpMethod;
  readonly headers?: Readonly<Record<string, TemplateText>>;
  /** A string is sent as it is, any other value as JSON, with the values of its templates. */
  readonly body?: unknown;
  /** The maximum duration of each attempt with its redirects, in milliseconds. Default: 30,000. */
  readonly timeout_ms?: number;
  /** The maximum size of the response, in bytes. Default: 1,000,000. */
  readonly max_bytes?: number;
  /** The maximum number of redirects. Default: 5. */
  readonly max_redirects?: number;
  /** The path of the output in a JSON response: `data.items.0`. Default: all of it. */
  readonly result?: string;
  /** Sends the header `Idempotency-Key`, which is the same for each attempt and after a resume. Default: false. */
  readonly idempotency_key?: boolean;
  /** Repeats after failed connections, timeouts and the statuses 408, 429 and 5xx. */
  readonly retry?: FlowRetry;
  readonly on_error?: OnError;
}

/** Changes variables, in order. The components after it see the new values. It has no output. */
export interface SetParams {
  readonly assign: readonly Assignment[];
  readonly on_error?: OnError;
}

export const assignOperators = [
  'set',
  'append',
  'extend',
  'add',
  'subtract',
  'multiply',
  'divide',
  'clear',
  'remove first',
  'remove last',
] as const;

/** One change of a variable. */
export interface Assignment {
  readonly variable: string;
  /** `append` and `extend` add to an array; `clear` returns to the empty value of the type. Default: `set`. */
  readonly operator?: (typeof assignOperators)[number];
  /** A template that is a single reference becomes the value itself. */
  readonly value?: unknown;
}
