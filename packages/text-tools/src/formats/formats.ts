import {
  namespaces,
  plainName,
  type ReadBody,
  readArguments,
  readJsonCalls,
  readParameters,
  readPythonCalls,
  type ToolTable,
} from './read-calls.js';

/** The opening and the closing mark of a thought. */
export type ThinkingTag = readonly [open: string, close: string];

export const thinkingTags: readonly ThinkingTag[] = [
  ['<think>', '</think>'],
  ['<thinking>', '</thinking>'],
  ['<reasoning>', '</reasoning>'],
  ['<seed:think>', '</seed:think>'],
  ['[THINK]', '[/THINK]'],
  ['◁think▷', '◁/think▷'],
  ['<|START_THINKING|>', '<|END_THINKING|>'],
];

/** How a family of models writes tool calls. Sources: the chat templates of the models. */
export interface Format {
  readonly open: string;
  /** The text that must follow the opening mark; its group is the name of the tool. */
  readonly head: RegExp;
  /** Marks after a call, dropped. With `isMarked`, the first of them ends the call. */
  readonly closes: readonly string[];
  readonly read: ReadBody;
  /** Whether the body is text up to a closing mark, not a bracketed value that ends by itself. */
  readonly isMarked?: boolean;
  /** Whether the opening mark is a token of its own, which prose does not contain. */
  readonly isToken?: boolean;
  /** Whether it counts only at the start of a line. */
  readonly startsLine?: boolean;
  /** Whether it only counts with the name of a tool. */
  readonly isNamed?: boolean;
  /** Whether several calls may follow each other within the mark. */
  readonly repeats?: boolean;
  /** Whether `textTools` reads it, too. */
  readonly isKnown?: boolean;
}

const name = String.raw`([\p{L}\p{N}_.:/-]{1,100}?)`;
const isValue = /^\s*(?=\{|\[\s*\{)/;
const isCall = /^\s*(?=(?:\[\s*)?[\p{L}_][\p{L}\p{N}_.-]{0,100}\()/u;
const fences = ['```'];

export const formats: readonly Format[] = [
  // Hermes, Qwen, and most models that are trained on them.
  {
    open: '<tool_call>',
    head: isValue,
    closes: ['</tool_call>'],
    read: readJsonCalls,
    repeats: true,
    isKnown: true,
  },
  // The same with attributes, and the tags of Jamba, Granite, Glaive and others.
  ...['tool_call', 'tool_calls', 'function_call', 'functioncall', 'tool_use'].map(
    (tag): Format => ({
      open: `<${tag}`,
      head:
        tag === 'tool_call'
          ? /^\s[^<>]{0,100}>\s*(?=\{|\[\s*\{)/
          : /^(?:\s[^<>]{0,100})?>\s*(?=\{|\[\s*\{)/,
      closes: [`</${tag}>`],
      read: readJsonCalls,
      repeats: true,
    }),
  ),
  // GLM 4.5 and later.
  {
    open: '<tool_call>',
    head: new RegExp(String.raw`^\s*${name}\s*(?=<arg_key>|</tool_call>)`, 'u'),
    closes: ['</tool_call>'],
    read: readParameters,
    isMarked: true,
  },
  // Qwen3-Coder, Seed-OSS, and Llama 3.1 with JSON as the body.
  {
    open: '<function=',
    head: new RegExp(String.raw`^"?${name}"?>`, 'u'),
    closes: ['</function>', '</tool_call>', '</seed:tool_call>'],
    read: readParameters,
    isMarked: true,
    isKnown: true,
  },
  // MiniMax M2.
  {
    open: '<invoke name="',
    head: new RegExp(String.raw`^${name}">`, 'u'),
    closes: ['</invoke>', '</minimax:tool_call>'],
    read: readParameters,
    isMarked: true,
  },
  // Mistral: a list, or the name before the arguments.
  {
    open: '[TOOL_CALLS]',
    head: isValue,
    closes: [],
    read: readJsonCalls,
    repeats: true,
    isToken: true,
    isKnown: true,
  },
  {
    open: '[TOOL_CALLS]',
    head: new RegExp(String.raw`^\s*${name}\s*(?:\[CALL_ID\]\w{1,64})?(?:\[ARGS\])?\s*(?=\{)`, 'u'),
    closes: [],
    read: readArguments,
    isToken: true,
    isKnown: true,
  },
  // Llama 3: JSON, or Python for the tools that it is trained on.
  {
    open: '<|python_tag|>',
    head: isValue,
    closes: ['<|eom_id|>', '<|eot_id|>'],
    read: readJsonCalls,
    repeats: true,
    isToken: true,
    isKnown: true,
  },
  {
    open: '<|python_tag|>',
    head: isCall,
    closes: ['<|eom_id|>', '<|eot_id|>'],
    read: readPythonCalls,
    repeats: true,
    isToken: true,
  },
  // Phi and Granite.
  {
    open: '<|tool_call|>',
    head: isValue,
    closes: ['<|/tool_call|>', '</tool_call>'],
    read: readJsonCalls,
    repeats: true,
    isToken: true,
    isKnown: true,
  },
  // DeepSeek V3 and R1 with a fence, V3.1 without.
  {
    open: '<｜tool▁call▁begin｜>',
    head: new RegExp(
      String.raw`^\s*(?:function\s*<｜tool▁sep｜>)?\s*${name}\s*(?:<｜tool▁sep｜>)?\s*(?:${'```'}(?:json)?)?\s*(?=\{)`,
      'u',
    ),
    closes: [...fences, '<｜tool▁call▁end｜>', '<｜tool▁calls▁end｜>', '<｜end▁of▁sentence｜>'],
    read: readArguments,
    isToken: true,
  },
  // Kimi K2.
  {
    open: '<|tool_call_begin|>',
    head: new RegExp(
      String.raw`^\s*(?:functions\.)?${name}(?::\d{1,5})?\s*<\|tool_call_argument_begin\|>\s*(?=\{)`,
      'u',
    ),
    closes: ['<|tool_call_end|>', '<|tool_calls_section_end|>'],
    read: readArguments,
    isToken: true,
  },
  // Command R7B, Command A and later; then Command R and R+.
  {
    open: '<|START_ACTION|>',
    head: isValue,
    closes: ['<|END_ACTION|>', '<|END_OF_TURN_TOKEN|>'],
    read: readJsonCalls,
    repeats: true,
    isToken: true,
  },
  {
    open: 'Action:',
    head: /^\s*```json\s*(?=\[)/,
    closes: fences,
    read: readJsonCalls,
    repeats: true,
    startsLine: true,
    isKnown: true,
  },
  // Llama 4, LFM2, and Gemma in a fence of its own.
  {
    open: '<|python_start|>',
    head: isCall,
    closes: ['<|python_end|>', '<|eom|>', '<|eot|>'],
    read: readPythonCalls,
    repeats: true,
    isToken: true,
  },
  {
    open: '<|tool_call_start|>',
    head: isCall,
    closes: ['<|tool_call_end|>'],
    read: readPythonCalls,
    repeats: true,
    isToken: true,
  },
  {
    open: '```tool_code',
    head: isCall,
    closes: fences,
    read: readPythonCalls,
    repeats: true,
    startsLine: true,
  },
  {
    open: 'Action:',
    head: isCall,
    closes: [],
    read: readPythonCalls,
    repeats: true,
    startsLine: true,
    isNamed: true,
  },
];

/** A mark around calls or an answer, which is dropped with its closing mark if its head follows. */
export interface Frame extends Pick<Format, 'open' | 'head' | 'isToken'> {
  readonly close?: string;
}

export const frames: readonly Frame[] = [
  { open: '<｜tool▁calls▁begin｜>', head: /^\s*(?=<｜tool▁call▁begin｜>)/, isToken: true },
  { open: '<|tool_calls_section_begin|>', head: /^\s*(?=<\|tool_call_begin\|>)/, isToken: true },
  { open: '<tool_call>', head: /^\s*(?=<function=)/ },
  { open: '<seed:tool_call>', head: /^\s*(?=<function=)/ },
  { open: '<minimax:tool_call>', head: /^\s*(?=<invoke )/ },
  { open: '<|START_RESPONSE|>', head: /^/, close: '<|END_RESPONSE|>' },
  { open: '<|START_TEXT|>', head: /^/, close: '<|END_TEXT|>' },
];

/** A whole reply of calls, as Llama 3.2 and ToolACE write it. */
export const bareCall: Format = {
  open: '',
  head: isCall,
  closes: ['<|eot_id|>', '<|eom_id|>', '<|im_end|>'],
  read: readPythonCalls,
  isNamed: true,
};

/** A whole reply of calls in JSON, as Llama 3.1, xLAM and Hammer write it. */
export const bareJsonCall: Format = {
  open: '',
  head: isValue,
  closes: [...bareCall.closes, '</tool_call>'],
  read: readJsonCalls,
};

/** Whether text starts as a call in JSON does; `more` if that depends on what follows. */
export const bareJsonAt = (text: string, tools: ToolTable): boolean | 'more' => {
  const [, named] =
    /^\s*(?:\[\s*)?\{\s*(?:"(?:id|type)"\s*:\s*"[\w-]*"\s*,\s*)*"(?:name|tool_name|tool|function)"\s*:\s*(?:\{\s*"name"\s*:\s*)?"([\w.:/-]*)"/.exec(
      text,
    ) ?? [];
  if (named !== undefined) return tools.has(plainName(named, tools));
  return /^\s*(?:\[\s*)?(?:\{[\s"\w:,./{-]*)?$/.test(text) && text.length < 120 ? 'more' : false;
};

export const mayBeBare = (text: string, tools: ToolTable): boolean => {
  const begun = text.replace(/^\s*\[?\s*/, '');
  return [...tools.keys()].some((tool) =>
    ['', ...namespaces].some((space) =>
      [`${space}${tool}(`, `${space}${tool}.call(`].some((call) => call.startsWith(begun)),
    ),
  );
};

export const bareName = (text: string, tools: ToolTable): string | undefined => {
  const [, written] = /^\s*(?:\[\s*)?([\p{L}_][\p{L}\p{N}_.-]{0,100})\(/u.exec(text) ?? [];
  const plain = written === undefined ? undefined : plainName(written, tools);
  return plain !== undefined && tools.has(plain) ? plain : undefined;
};

/** The ends of messages in the harmony format of gpt-oss. */
export const harmonyEnds = ['<|end|>', '<|return|>', '<|call|>'];

/**
 * The header of a message in the harmony format, from its channel to its text. A recipient may come before the
 * channel or after it.
 */
export const harmonyHeader =
  /^(?:<\|start\|>)?(?:assistant)?(?:\s*to=([\w.-]{1,100}))?\s*<\|channel\|>\s*(analysis|commentary|final)\b(?:\s*to=([\w.-]{1,100}))?(?:\s*(?:<\|constrain\|>)?\s*\w{1,20})?\s*<\|message\|>/;

/** Whether a header may become complete with more text. A reply may start with its recipient. */
export const mayBeHarmony = (text: string, isStart: boolean): boolean =>
  ['<|start|>', '<|channel|>', ...(isStart ? ['to=functions.'] : [])].some(
    (lead) => lead.startsWith(text) || (text.startsWith(lead) && !/[^\w\s<|>=.-]/.test(text)),
  );

export const harmonyCall: Format = {
  open: '',
  head: /^/,
  closes: harmonyEnds,
  read: readArguments,
  isToken: true,
};
