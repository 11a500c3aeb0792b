/** A text in which `{{sys.query}}`, `{{component@output}}` and their like stand for what is known when it is needed. */
export type TemplateText = string;

/** A flow as it is written down: JSON, as `schema.json` says. */
export interface FlowDocument {
  readonly version: 1;
  /** What events and other agents call it. */
  readonly name: string;
  /** What it is for. */
  readonly description?: string;
  readonly components: FlowComponents;
}

/** Components by their ids: a letter, then letters, digits, `_`, `-` and `:`, at most 64. No id is used twice in a document. */
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
}

/** What a component can be. */
export type ComponentName = keyof FlowParams;

/** A component of one kind. What leads to it, and where it leads, may be said at either end, or at both. */
export interface ComponentOf<Name extends ComponentName> {
  readonly component_name: Name;
  readonly params: FlowParams[Name];
  /** The components that lead to it: it runs when all have settled, if one of them at least has led to it. */
  readonly upstream?: readonly string[];
  /** The components that it leads to. */
  readonly downstream?: readonly string[];
}

/** One step of a flow. */
export type FlowComponent =
  | { readonly [Name in Exclude<ComponentName, 'begin'>]: ComponentOf<Name> }[Exclude<
      ComponentName,
      'begin'
    >]
  | (Omit<ComponentOf<'begin'>, 'params'> & Partial<Pick<ComponentOf<'begin'>, 'params'>>);

/** What happens where a component fails, instead of an error of the flow. */
export interface OnError {
  /** What its output then is. Default: an empty text. */
  readonly value?: TemplateText;
  /** Where it then leads, instead of where it leads otherwise. */
  readonly to?: readonly string[];
}

/** Asks a model, and lets it use tools. Its output is the answer's text, or what it says where `output` gives its form. */
export interface AgentParams {
  /** A key of `models`. */
  readonly llm_id: string;
  readonly sys_prompt?: TemplateText;
  /** What it is asked; those that are empty are left out. Default: what the flow is asked, as it is. */
  readonly prompts?: readonly FlowPrompt[];
  /** Messages of the conversation before that it sees. Default: 0. */
  readonly message_history_window_size?: number;
  /** How often it may ask its model. Default: 10. */
  readonly max_rounds?: number;
  /** Names of tools. */
  readonly tools?: readonly string[];
  /** Keys of `mcp`: all tools of these servers. */
  readonly mcp?: readonly string[];
  /** A JSON Schema of an object: what the answer must be. It may not use patterns. */
  readonly output?: Readonly<Record<string, unknown>>;
  readonly temperature?: number;
  readonly max_tokens?: number;
  readonly on_error?: OnError;
}

/** One message of what an agent is asked. */
export interface FlowPrompt {
  readonly role: 'user' | 'assistant';
  readonly content: TemplateText;
}

/** Looks for passages. Its output is what a model can cite, empty where nothing was found; a path into it finds the passages. */
export interface RetrievalParams {
  /** A key of `retrievers`. */
  readonly retriever_id: string;
  /** Default: `{{sys.query}}`. */
  readonly query?: TemplateText;
  /** Passages at most. Default: 5. */
  readonly top_n?: number;
  readonly on_error?: OnError;
}

/** Leads on by the first case that holds. */
export interface SwitchParams {
  readonly cases: readonly SwitchCase[];
  /** Where it leads when none does. Default: nowhere. */
  readonly otherwise?: readonly string[];
}

/** One way on. */
export interface SwitchCase {
  readonly conditions: readonly SwitchCondition[];
  /** Whether all conditions must hold, or one. Default: `and`. */
  readonly logic?: 'and' | 'or';
  readonly to: readonly string[];
}

/** The comparisons. Texts are compared without regard to case and to blanks around them; one that is no number is neither greater nor less. */
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

/** A comparison. */
export type SwitchOperator = (typeof operators)[number];

/** Compares two texts, or looks at one. */
export interface SwitchCondition {
  readonly value: TemplateText;
  readonly operator: SwitchOperator;
  /** What the value is compared with. */
  readonly operand?: TemplateText;
}

/** Lets a model choose one of some categories. Its output is the name of the category. */
export interface CategorizeParams {
  /** A key of `models`. */
  readonly llm_id: string;
  /** What is to be put into a category. Default: `{{sys.query}}`. */
  readonly query?: TemplateText;
  readonly categories: Readonly<Record<string, FlowCategory>>;
  /** Where it leads when the model chooses none of them. Default: that is an error. */
  readonly otherwise?: readonly string[];
  readonly on_error?: OnError & { readonly to: readonly string[] };
}

/** One of the categories. */
export interface FlowCategory {
  /** Tells the model what belongs to it. */
  readonly description: string;
  readonly examples?: readonly string[];
  readonly to: readonly string[];
}

/** Runs components for each item of a list. Its output is the list of what their messages say. */
export interface IterateParams {
  /** A JSON list, or a text that is split. */
  readonly items: TemplateText;
  /** What splits a text that is no JSON list. Default: the ends of lines. */
  readonly delimiter?: string;
  /** Items at most: others behind them are left out. Default: 20. */
  readonly max_items?: number;
  /** Items at once. Default: 1. */
  readonly concurrency?: number;
  /** What stands between the items where the output is used as a text. Default: an empty line. */
  readonly separator?: string;
  /** A graph of its own, in which `{{id@item}}` is the item and `{{id@index}}` its place, from 1; `id` is that of the iteration. */
  readonly components: FlowComponents;
  readonly on_error?: OnError;
}

/** Says something: what the flow answers, or what comes of an item. */
export interface MessageParams {
  readonly content: TemplateText;
}

/** Calls a function of the program. Its output is what that returns. */
export interface CodeParams {
  /** A key of `code`. */
  readonly function: string;
  /** What it is called with: a template that is one reference alone gives its value as it is. Default: `{}`. */
  readonly input?: Readonly<Record<string, unknown>>;
  readonly on_error?: OnError;
}

/** Runs a tool, as a model would. Its output is the text of its result. */
export interface ToolParams {
  /** The name of a tool. */
  readonly tool: string;
  /** Its parameters: a template that is one reference alone gives its value as it is. Default: `{}`. */
  readonly input?: Readonly<Record<string, unknown>>;
  readonly on_error?: OnError;
}
