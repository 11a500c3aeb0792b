import { isRecord, parsedJson } from '@millrace/core/values';
import type {
  Assignment,
  FlowComponent,
  FlowComponents,
  FlowVariable,
  HumanField,
  OnError,
  SwitchCondition,
  SwitchOperator,
  VariableType,
} from '../document.js';
import { onErrorOf as handlerOf } from '../branches.js';
import { limits } from '../limits.js';
import type { Canvas, CanvasComponent, Params } from './canvas.js';
import { nameFrom, recordsIn, textIn, textsIn } from './canvas.js';
import { candidatesIn, type References, variableNamed } from './references.js';

/** The counterpart of a component of a canvas: one component, sometimes with another before it, and variables. */
export interface Converted {
  readonly component: FlowComponent;
  /** Runs before it, with its links. */
  readonly before?: FlowComponent;
  readonly variables?: Readonly<Record<string, FlowVariable>>;
}

export interface Conversion {
  readonly canvas: Canvas;
  readonly it: CanvasComponent;
  readonly refs: References;
  readonly note: (param: string, reason: string) => void;
  /** Converts IDs of the canvas. */
  readonly idsOf: (originals: unknown, param: string) => readonly string[];
  /** Converts the components inside it. */
  readonly inside: () => FlowComponents;
}

export const convert = (conversion: Conversion): Converted => {
  switch (conversion.it.kind) {
    case 'begin':
    case 'iterationitem':
    case 'loopitem':
      return convertBegin(conversion);
    case 'agent':
    case 'llm':
    case 'generate':
      return convertAgent(conversion);
    case 'retrieval':
      return convertRetrieval(conversion);
    case 'categorize':
      return convertCategorize(conversion);
    case 'switch':
      return convertSwitch(conversion);
    case 'message':
      return convertMessage(conversion);
    case 'iteration':
      return convertIteration(conversion);
    case 'loop':
      return convertLoop(conversion);
    case 'exitloop':
      return convertExit(conversion);
    case 'variableassigner':
      return convertAssigner(conversion);
    case 'variableaggregator':
      return convertAggregator(conversion);
    case 'stringtransform':
      return convertTransform(conversion);
    case 'userfillup':
      return convertForm(conversion);
    case 'invoke':
      return convertInvoke(conversion);
    case 'codeexec':
    case 'code':
      return convertCode(conversion);
    default:
      return convertTool(conversion);
  }
};

// ---------------------------------------------------------------- params

const isSet = (value: unknown): boolean =>
  value !== undefined &&
  value !== null &&
  value !== '' &&
  value !== false &&
  value !== 0 &&
  !(Array.isArray(value) && value.length === 0) &&
  !(isRecord(value) && Object.keys(value).length === 0);

const numberOf = (value: unknown): number | undefined => {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined;
};

const within = (value: number, least: number, most: number): number =>
  Math.min(Math.max(Math.round(value), least), most);

/** Reports params that are set, and have no counterpart. */
const noteParams = (
  { it, note }: Conversion,
  reason: string,
  names: readonly string[],
  defaults: Params = {},
): void =>
  names
    .filter((name) => isSet(it.params[name]) && it.params[name] !== defaults[name])
    .forEach((name) => {
      note(name, reason);
    });

/** How a canvas handles the error of a component, and repeats it. */
const handling = ({
  it: { params },
  refs,
  idsOf,
}: Conversion): {
  readonly on_error?: OnError;
  readonly retry?: { readonly times: number; readonly delay_ms: number };
} => {
  const { exception_method: method, exception_default_value: value } = params;
  const to = method === 'goto' ? idsOf(params['exception_goto'], 'exception_goto') : [];
  const fallback = method === 'comment' ? refs.text(textIn(value), 'exception_default_value') : '';
  const times = numberOf(params['max_retries']) ?? 0;
  const delay = numberOf(params['delay_after_error']) ?? 1;
  return {
    ...(times >= 1 && {
      retry: { times: within(times, 1, 10), delay_ms: within(delay * 1_000, 0, 600_000) },
    }),
    ...((to.length > 0 || method === 'comment') && {
      on_error: { ...(method === 'comment' && { value: fallback }), ...(to.length > 0 && { to }) },
    }),
  };
};

/** An empty model is the default model of the user there. */
const modelOf = ({ params }: CanvasComponent): string => textIn(params['llm_id']) || 'default';

const links = ({ it, idsOf }: Conversion): { readonly downstream?: readonly string[] } => {
  const downstream = idsOf(it.downstream, 'downstream');
  return downstream.length === 0 ? {} : { downstream };
};

// ---------------------------------------------------------------- components

const convertBegin = (conversion: Conversion): Converted => {
  noteParams(conversion, 'A greeting is not part of a flow: the chat client shows it.', [
    'prologue',
  ]);
  noteParams(conversion, 'A flow starts with a question.', ['mode'], { mode: 'conversational' });
  return { component: { component_name: 'begin', params: {}, ...links(conversion) } };
};

const convertAgent = (conversion: Conversion): Converted => {
  const { it, refs, note } = conversion;
  const { params } = it;
  const tools = recordsIn(params['tools']).map((tool) => {
    const name = toolName(textIn(tool['name']) || textIn(tool['component_name']));
    note('tools', `Tools come from the program, with their settings: provide a tool '${name}'.`);
    return name;
  });
  const mcp = recordsIn(params['mcp']).map(({ mcp_id: id }) => textIn(id));
  mcp.forEach((id) => {
    note('mcp', `MCP servers come from the program: provide the tools of '${id}'.`);
  });
  const enabled = ['topP', 'presencePenalty', 'frequencyPenalty'];
  enabled
    .filter((name) => params[`${name}Enabled`] === true)
    .forEach((name) => {
      note(name, 'Set it on the model that the program provides.');
    });
  noteParams(conversion, 'Agents get images with the input of the flow.', ['visual_files_var']);
  const prompts = promptsIn(params['prompts']).map(({ role, content }) => ({
    role: role === 'assistant' ? ('assistant' as const) : ('user' as const),
    content: refs.text(content, 'prompts'),
  }));
  const isQuestion = prompts.length === 1 && prompts[0]?.content === '{{sys.query}}';
  const history = numberOf(params['message_history_window_size']) ?? 0;
  const rounds = numberOf(params['max_rounds']) ?? 0;
  const structured = outputSchema(params['outputs']);
  const { temperature, max_tokens } = params;
  return {
    component: {
      component_name: 'agent',
      params: {
        llm_id: modelOf(it),
        sys_prompt: refs.text(textIn(params['sys_prompt']), 'sys_prompt'),
        ...(!isQuestion && prompts.length > 0 && { prompts }),
        ...(history > 0 && { message_history_window_size: within(history, 0, 1_000) }),
        // There, the answer after the last round of tools does not count.
        ...(rounds > 0 &&
          tools.length + mcp.length > 0 && { max_rounds: within(rounds + 1, 1, 1_000) }),
        ...(tools.length > 0 && { tools: [...new Set(tools)] }),
        ...(mcp.length > 0 && { mcp: [...new Set(mcp)] }),
        ...(structured !== undefined && { output: structured }),
        ...(params['temperatureEnabled'] === true && { temperature: numberOf(temperature) ?? 0 }),
        ...(params['maxTokensEnabled'] === true && {
          max_tokens: within(numberOf(max_tokens) ?? 1, 1, Number.MAX_SAFE_INTEGER),
        }),
        ...handling(conversion),
      },
      ...links(conversion),
    },
  };
};

const promptsIn = (
  prompts: unknown,
): readonly { readonly role: string; readonly content: string }[] =>
  typeof prompts === 'string'
    ? [{ role: 'user', content: prompts }]
    : recordsIn(prompts).map((it) => ({
        role: textIn(it['role']),
        content: textIn(it['content']),
      }));

/** The JSON Schema of a structured output; a canvas has an empty one if the answer is text. */
const outputSchema = (outputs: unknown): Params | undefined => {
  const structured = isRecord(outputs) ? outputs['structured'] : undefined;
  if (!isRecord(structured)) return undefined;
  const schema = isRecord(structured['value']) ? structured['value'] : structured;
  return schema['type'] === 'object' && isSet(schema['properties']) ? schema : undefined;
};

const toolName = (name: string): string =>
  name
    .trim()
    .replace(/[^A-Za-z0-9_-]+/gu, '_')
    .slice(0, 64) || 'tool';

const convertRetrieval = (conversion: Conversion): Converted => {
  const { it, refs } = conversion;
  const { params } = it;
  const sources = textsIn(params['dataset_ids']).concat(textsIn(params['kb_ids']));
  const [source, ...others] = [...new Set(sources)];
  const query = textIn(params['query']);
  const settings = ['rerank_id', 'use_kg', 'cross_languages', 'meta_data_filter', 'empty_response'];
  const numbers = ['similarity_threshold', 'keywords_similarity_weight', 'top_k', 'memory_ids'];
  const defaults = { similarity_threshold: 0.2, keywords_similarity_weight: 0.5, top_k: 1024 };
  const reason = 'It belongs to the retriever that the program provides: set it there.';
  noteParams(conversion, reason, [...settings, ...numbers], defaults);
  return {
    component: {
      component_name: 'retrieval',
      params: {
        retriever_id: source !== undefined && others.length === 0 ? source : it.id,
        query: query === '' ? '{{sys.query}}' : templateFrom(query, 'query', refs),
        top_n: within(numberOf(params['top_n']) ?? 8, 1, 1_000),
        ...handling(conversion),
      },
      ...links(conversion),
    },
  };
};

/** A param that is a reference without braces, or text with references. */
const templateFrom = (written: string, param: string, refs: References): string =>
  /^(?:sys\.|env\.|[A-Za-z0-9_:-]+@)[A-Za-z0-9_.-]+$/u.test(written.trim())
    ? refs.ref(written, param)
    : refs.text(written, param);

const convertCategorize = (conversion: Conversion): Converted => {
  const { it, refs, idsOf } = conversion;
  const { params } = it;
  const given = isRecord(params['category_description']) ? params['category_description'] : {};
  const categories = Object.entries(given).map(([name, category]) => {
    const { description, examples, to } = isRecord(category) ? category : {};
    const shown = textsIn(examples).filter((text) => text.trim() !== '');
    return [
      name,
      {
        description: textIn(description) || name,
        ...(shown.length > 0 && { examples: shown }),
        to: idsOf(to, 'category_description'),
      },
    ] as const;
  });
  const { on_error: _, retry } = handling(conversion);
  // There, an answer without a category counts as the last one.
  const otherwise = categories.at(-1)?.[1].to ?? [];
  return {
    component: {
      component_name: 'categorize',
      params: {
        llm_id: modelOf(it),
        query: templateFrom(textIn(params['query']) || 'sys.query', 'query', refs),
        categories: Object.fromEntries(categories),
        ...(otherwise.length > 0 && { otherwise }),
        ...(retry && { retry }),
      },
    },
  };
};

const operators: Readonly<Record<string, SwitchOperator>> = {
  contains: 'contains',
  'not contains': 'not contains',
  'start with': 'starts with',
  'end with': 'ends with',
  empty: 'is empty',
  'not empty': 'is not empty',
  '=': 'equals',
  is: 'equals',
  '≠': 'not equals',
  'is not': 'not equals',
  '>': '>',
  '<': '<',
  '≥': '≥',
  '≤': '≤',
};

const conditionFrom = (
  { refs, note }: Conversion,
  left: string,
  operator: unknown,
  right: string,
  param: string,
): SwitchCondition => {
  const known = Object.hasOwn(operators, textIn(operator))
    ? operators[textIn(operator)]
    : undefined;
  if (known === undefined)
    note(param, `The operator '${textIn(operator)}' is not known: 'equals' is used.`);
  const isAlone = known === 'is empty' || known === 'is not empty';
  return {
    value: refs.ref(left, param),
    operator: known ?? 'equals',
    ...(!isAlone && { operand: right }),
  };
};

const asText = (value: unknown): string =>
  typeof value === 'string'
    ? value
    : value === undefined || value === null
      ? ''
      : JSON.stringify(value);

const convertSwitch = (conversion: Conversion): Converted => {
  const { it, refs, idsOf } = conversion;
  const cases = recordsIn(it.params['conditions']).map(({ items, logical_operator, to }) => ({
    conditions: recordsIn(items)
      .filter((item) => textIn(item['cpn_id']) !== '')
      .map((item) => {
        const right = refs.text(asText(item['value']), 'conditions');
        return conditionFrom(
          conversion,
          textIn(item['cpn_id']),
          item['operator'],
          right,
          'conditions',
        );
      }),
    ...(logical_operator === 'or' && { logic: 'or' as const }),
    to: idsOf(to, 'conditions'),
  }));
  const otherwise = idsOf(it.params['end_cpn_ids'], 'end_cpn_ids');
  return {
    component: {
      component_name: 'switch',
      params: { cases, ...(otherwise.length > 0 && { otherwise }) },
    },
  };
};

const convertMessage = (conversion: Conversion): Converted => {
  const { it, refs, note } = conversion;
  const [content = '', ...others] = textsIn(it.params['content']);
  if (others.length > 0) {
    note('content', 'One of several contents is chosen by chance there. The first one is used.');
  }
  noteParams(conversion, 'The answer of a flow is text.', [
    'output_format',
    'auto_play',
    'memory_ids',
  ]);
  return {
    component: {
      component_name: 'message',
      params: { content: refs.text(content, 'content') },
      ...links(conversion),
    },
  };
};

// ---------------------------------------------------------------- repetition

const convertIteration = (conversion: Conversion): Converted => {
  const { it, refs, note, inside, canvas } = conversion;
  const outputs = Object.values(isRecord(it.params['outputs']) ? it.params['outputs'] : {});
  const [output, ...others] = outputs.flatMap((given) =>
    textsIn(isRecord(given) ? given['ref'] : ''),
  );
  if (others.length > 0) {
    note('outputs', `An iteration has one output: only '${output ?? ''}' is used.`);
  }
  const sends = [...canvas.components.values()].some(
    ({ parent, kind }) => parent === it.original && kind === 'message',
  );
  if (sends) {
    note('Message', 'Messages in an iteration are its output: they are not sent to the user.');
  }
  return {
    component: {
      component_name: 'iterate',
      params: {
        items: refs.ref(textIn(it.params['items_ref']) || 'sys.query', 'items_ref'),
        max_items: 1_000,
        components: withMessage(
          inside(),
          `${it.id}_out`,
          output === undefined ? undefined : refs.ref(output, 'outputs'),
        ),
        ...onErrorOf(conversion),
      },
      ...links(conversion),
    },
  };
};

const onErrorOf = (conversion: Conversion): { readonly on_error?: OnError } => {
  const { on_error } = handling(conversion);
  return on_error === undefined ? {} : { on_error };
};

/** A graph needs a message: its output. Without a given one, it is the output of the components at its end. */
export const withMessage = (
  components: FlowComponents,
  id: string,
  content: string | undefined,
): FlowComponents => {
  const all = Object.entries(components);
  const hasMessage = all.some(([, { component_name: name }]) => name === 'message');
  if (hasMessage && content === undefined) return components;
  const before = new Set(all.flatMap(([, component]) => nextOf(component)));
  const ends = all.filter(([, component]) => nextOf(component).length === 0).map(([name]) => name);
  const silent = new Set(['switch', 'set', 'begin']);
  const shown = ends.filter((name) => !silent.has(components[name]?.component_name ?? ''));
  const upstream = ends.length > 0 ? ends : [...before].slice(-1);
  return {
    ...components,
    [id.slice(0, 64)]: {
      component_name: 'message',
      params: { content: content ?? shown.map((name) => `{{${name}@output}}`).join('\n') },
      upstream,
    },
  };
};

/** The components that a component leads to. */
export const nextOf = (component: FlowComponent): readonly string[] => {
  const handled = handlerOf(component)?.to ?? [];
  switch (component.component_name) {
    case 'switch':
      return [
        ...component.params.cases.flatMap(({ to }) => to),
        ...(component.params.otherwise ?? []),
      ];
    case 'categorize':
      return [
        ...Object.values(component.params.categories).flatMap(({ to }) => to),
        ...(component.params.otherwise ?? []),
        ...handled,
      ];
    default:
      return [...(component.downstream ?? []), ...handled];
  }
};

export const exitName = (id: string): string => nameFrom(id, 'exit');

const convertLoop = (conversion: Conversion): Converted => {
  const { it, refs, note, inside, canvas, idsOf } = conversion;
  const { params, id } = it;
  const given = recordsIn(params['loop_variables']);
  const variables = given.map((item): readonly [string, FlowVariable] => {
    const type = typeFrom(textIn(item['type']));
    const isConstant = item['input_mode'] === 'constant';
    const value = isConstant ? ofType(type, item['value']) : undefined;
    return [
      nameFrom(id, textIn(item['variable'])),
      { type, ...(value !== undefined && { default: value }) },
    ];
  });
  const assign = given.flatMap((item): readonly Assignment[] =>
    item['input_mode'] === 'variable'
      ? [
          {
            variable: nameFrom(id, textIn(item['variable'])),
            value: refs.ref(textIn(item['value']), 'loop_variables'),
          },
        ]
      : [],
  );
  const hasExit = [...canvas.components.values()].some(
    ({ parent, kind }) => parent === it.original && kind === 'exitloop',
  );
  const conditions = recordsIn(params['loop_termination_condition']).map((item) => {
    const isReference = item['input_mode'] === 'variable';
    const right = isReference
      ? refs.ref(textIn(item['value']), 'loop_termination_condition')
      : refs.text(asText(item['value']), 'loop_termination_condition');
    return conditionFrom(
      conversion,
      textIn(item['variable']),
      item['operator'],
      right,
      'loop_termination_condition',
    );
  });
  const isAny = params['logical_operator'] === 'or';
  if (hasExit && conditions.length > 1 && !isAny) {
    note('loop_termination_condition', 'With an ExitLoop, one of its conditions is enough.');
  }
  const exit: SwitchCondition = {
    value: `{{var.${exitName(id)}}}`,
    operator: 'equals',
    operand: 'true',
  };
  const all = hasExit ? [...conditions, exit] : conditions;
  const count = numberOf(params['maximum_loop_count']) ?? 0;
  if (count < 1 || count > limits.rounds) {
    note('maximum_loop_count', `A loop has from 1 to ${limits.rounds} rounds.`);
  }
  const component: FlowComponent = {
    component_name: 'loop',
    params: {
      max_rounds: within(count || limits.rounds, 1, limits.rounds),
      ...(all.length > 0 && {
        until: {
          conditions: all,
          ...((isAny || hasExit) && all.length > 1 && { logic: 'or' as const }),
        },
      }),
      components: withMessage(inside(), `${id}_out`, undefined),
      ...onErrorOf(conversion),
    },
    ...links({ ...conversion, idsOf }),
  };
  return {
    component,
    ...(assign.length > 0 && { before: { component_name: 'set', params: { assign } } }),
    variables: {
      ...Object.fromEntries(variables),
      ...(hasExit && { [exitName(id)]: { type: 'boolean' } }),
    },
  };
};

const convertExit = (conversion: Conversion): Converted => {
  const { it, canvas } = conversion;
  const loop = canvas.components.get(it.parent ?? '')?.id ?? it.id;
  const assign = [{ variable: exitName(loop), value: true }];
  return { component: { component_name: 'set', params: { assign }, ...links(conversion) } };
};

// ---------------------------------------------------------------- variables

export const typeFrom = (type: string): VariableType => {
  const word = type.toLowerCase();
  if (word.startsWith('array') || word.startsWith('list')) return 'array';
  if (word.startsWith('object') || word === 'dict') return 'object';
  if (word === 'number' || word === 'boolean') return word;
  return 'string';
};

/** A value if it is of the type, or JSON text for one. */
export const ofType = (type: VariableType, given: unknown): unknown => {
  if (type === 'string') return typeof given === 'string' ? given : undefined;
  const value = typeof given === 'string' ? parsedJson(given) : given;
  const kind = Array.isArray(value) ? 'array' : typeof value;
  return value !== null && kind === type ? value : undefined;
};

const assignOperators: Readonly<Record<string, Assignment['operator']>> = {
  overwrite: 'set',
  set: 'set',
  clear: 'clear',
  append: 'append',
  extend: 'extend',
  remove_first: 'remove first',
  remove_last: 'remove last',
  '+=': 'add',
  '-=': 'subtract',
  '*=': 'multiply',
  '/=': 'divide',
};

const convertAssigner = (conversion: Conversion): Converted => {
  const { it, refs, note } = conversion;
  const assign = recordsIn(it.params['variables']).flatMap((item): readonly Assignment[] => {
    const written = textIn(item['variable']);
    const variable = assignable(conversion, written);
    const word = textIn(item['operator']);
    const operator = Object.hasOwn(assignOperators, word) ? assignOperators[word] : undefined;
    if (variable === undefined || operator === undefined) {
      const why = variable === undefined ? `'${written}' cannot be set` : `'${word}' is not known`;
      note('variables', `${why}: this assignment is left out.`);
      return [];
    }
    const { parameter } = item;
    const isReference = ['overwrite', 'append', 'extend'].includes(word);
    const text = typeof parameter === 'string' ? parameter : undefined;
    const filled =
      text === undefined
        ? parameter
        : isReference
          ? refs.ref(text, 'variables')
          : refs.text(text, 'variables');
    const isAlone = ['clear', 'remove first', 'remove last'].includes(operator);
    return [{ variable, operator, ...(!isAlone && { value: filled }) }];
  });
  return asSet(conversion, assign);
};

const assignable = ({ canvas }: Conversion, written: string): string | undefined => {
  if (written.startsWith('env.')) {
    const name = written.slice('env.'.length);
    return canvas.variables.has(name) ? variableNamed(name) : undefined;
  }
  const [id = '', field = ''] = written.split('@');
  const component = canvas.components.get(id);
  return component?.kind === 'loop' ? nameFrom(component.id, field) : undefined;
};

/** A `set` component; without an assignment, it would be invalid, so it counts its runs. */
const asSet = (conversion: Conversion, assign: readonly Assignment[]): Converted => {
  const { id } = conversion.it;
  if (assign.length > 0) {
    return { component: { component_name: 'set', params: { assign }, ...links(conversion) } };
  }
  const runs = nameFrom(id, 'runs');
  return {
    component: {
      component_name: 'set',
      params: { assign: [{ variable: runs, operator: 'add', value: 1 }] },
      ...links(conversion),
    },
    variables: { [runs]: { type: 'number' } },
  };
};

const convertAggregator = (conversion: Conversion): Converted => {
  const { it, refs, note } = conversion;
  const groups = recordsIn(it.params['groups']).map((group) => ({
    variable: nameFrom(it.id, textIn(group['group_name'])),
    value: candidatesIn(group)
      .map((candidate) => refs.ref(candidate, 'groups'))
      .join(''),
    count: candidatesIn(group).length,
  }));
  if (groups.some(({ count }) => count > 1)) {
    note(
      'groups',
      'The first value is taken there. Here, all values of branches that ran are joined as text.',
    );
  }
  const assign = groups.map(({ variable, value }) => ({ variable, value }));
  const declared = groups.map(({ variable }) => [variable, { type: 'string' }] as const);
  const { component, variables } = asSet(conversion, assign);
  return { component, variables: { ...variables, ...Object.fromEntries(declared) } };
};

const convertTransform = (conversion: Conversion): Converted => {
  const { it, refs, note } = conversion;
  const { method, script, split_ref: text, delimiters } = it.params;
  if (method === 'merge') {
    if (/\{%|\|/u.test(textIn(script)))
      note('script', 'Jinja is not supported: only references are replaced.');
    const variable = nameFrom(it.id, 'result');
    const assign = [{ variable, value: refs.text(textIn(script), 'script') }];
    return { ...asSet(conversion, assign), variables: { [variable]: { type: 'string' } } };
  }
  const name = nameFrom(it.id);
  note('method', `Flows have no component that splits text: provide a function '${name}'.`);
  return {
    component: {
      component_name: 'code',
      params: {
        function: name,
        input: { text: refs.ref(textIn(text), 'split_ref'), delimiters: textsIn(delimiters) },
        ...handling(conversion),
      },
      ...links(conversion),
    },
  };
};

// ---------------------------------------------------------------- the outside world

const convertForm = (conversion: Conversion): Converted => {
  const { it, refs, note } = conversion;
  const { inputs, tips, enable_tips } = it.params;
  const fields = Object.entries(isRecord(inputs) ? inputs : {}).map(([name, input]) => {
    const { name: label, type, options, optional } = isRecord(input) ? input : {};
    const choices = textsIn(options);
    const kind = textIn(type).toLowerCase();
    if (kind.includes('file')) note('inputs', `'${name}' is a file: it is asked for as text.`);
    const field: HumanField = {
      type: choices.length > 0 ? 'choice' : fieldType(kind),
      ...(textIn(label) !== '' && { label: textIn(label) }),
      ...(choices.length > 0 && { choices: [...new Set(choices)] }),
      ...(optional === true && { required: false }),
    };
    return [nameFrom(name), field] as const;
  });
  const message = enable_tips === false ? '' : refs.text(textIn(tips), 'tips');
  return {
    component: {
      component_name: 'human',
      params: {
        message: message || 'Please fill in the form.',
        ...(fields.length > 0 && { fields: Object.fromEntries(fields) }),
        ...onErrorOf(conversion),
      },
      ...links(conversion),
    },
  };
};

const fieldType = (kind: string): HumanField['type'] => {
  if (kind === 'integer' || kind === 'number') return 'number';
  return kind === 'boolean' ? 'boolean' : 'text';
};

const methods = ['GET', 'POST', 'PUT'] as const;

const convertInvoke = (conversion: Conversion): Converted => {
  const { it, refs, note } = conversion;
  const { params } = it;
  const method = methods.find((name) => name === textIn(params['method']).toUpperCase()) ?? 'GET';
  const values = recordsIn(params['variables']).map((item): readonly [string, unknown] => {
    const ref = textIn(item['ref']);
    const value = item['value'];
    const text = typeof value === 'string' ? refs.text(value, 'variables') : value;
    return [textIn(item['key']), ref === '' ? (text ?? '') : refs.ref(ref, 'variables')];
  });
  const url = refs.text(textIn(params['url']), 'url');
  const query = values
    .map(([key, value]) => `${encodeURIComponent(key)}=${asText(value)}`)
    .join('&');
  const isSent = method !== 'GET' && values.length > 0;
  if (isSent && textIn(params['datatype']).toLowerCase() === 'formdata') {
    note('datatype', 'Forms are not supported: the values are sent as JSON.');
  }
  noteParams(conversion, 'Convert the response in a function or an agent.', ['clean_html']);
  noteParams(conversion, 'Set the proxy on the `fetch` that the program provides.', ['proxy']);
  const headers = headersIn(conversion, textIn(params['headers']));
  const { retry, on_error } = handling(conversion);
  return {
    component: {
      component_name: 'http',
      params: {
        url: isSent || query === '' ? url : `${url}${url.includes('?') ? '&' : '?'}${query}`,
        method,
        ...(Object.keys(headers).length > 0 && { headers }),
        ...(isSent && { body: Object.fromEntries(values) }),
        timeout_ms: within((numberOf(params['timeout']) ?? 60) * 1_000, 1, 2 ** 31 - 1),
        ...(retry && method !== 'POST' && { retry }),
        ...(on_error && { on_error }),
      },
      ...links(conversion),
    },
  };
};

/** Credentials do not belong into documents, so they become secrets. */
const headersIn = (
  { it, refs, note }: Conversion,
  written: string,
): Readonly<Record<string, string>> => {
  const given = parsedJson(written);
  if (written.trim() !== '' && !isRecord(given))
    note('headers', 'They are not JSON: they are left out.');
  const entries = Object.entries(isRecord(given) ? given : {}).map(
    ([name, value]): readonly [string, string] => {
      const text = refs.text(asText(value), 'headers');
      if (!/authorization|api-?key|token|cookie|secret/iu.test(name) || text.includes('{{')) {
        return [name, text];
      }
      const secret = nameFrom(it.id, name).toUpperCase();
      note('headers', `The value of '${name}' is a secret: pass it as 'secrets.${secret}'.`);
      return [name, `{{secret.${secret}}}`];
    },
  );
  return Object.fromEntries(entries);
};

const convertCode = (conversion: Conversion): Converted => {
  const { it, refs, note } = conversion;
  const name = nameFrom(it.id);
  note('script', `A document has no code: provide a function '${name}' that returns its outputs.`);
  const given = isRecord(it.params['arguments']) ? it.params['arguments'] : {};
  const input = Object.entries(given).map(([key, value]): readonly [string, unknown] => [
    key,
    typeof value === 'string' ? templateFrom(value, 'arguments', refs) : value,
  ]);
  return {
    component: {
      component_name: 'code',
      params: {
        function: name,
        input: Object.fromEntries(input),
        ...handling(conversion),
      },
      ...links(conversion),
    },
  };
};

/** Params that are settings of all components. */
const general = new Set([
  ...['outputs', 'inputs', 'max_retries', 'delay_after_error', 'description'],
  ...['exception_method', 'exception_default_value', 'exception_goto', 'exception_comment'],
]);

/** Any other component is a tool there, or a step of another kind of canvas. */
const convertTool = (conversion: Conversion): Converted => {
  const { it, refs, note } = conversion;
  const name = toolName(it.name.replace(/(?<=[a-z0-9])(?=[A-Z])/gu, '_').toLowerCase());
  note('component_name', `Flows have no component '${it.name}': provide a tool '${name}'.`);
  const own = Object.entries(it.params).filter(([key, value]) => !general.has(key) && isSet(value));
  const input = own.flatMap(([key, value]) =>
    typeof value === 'string' && /@|(?:sys|env)\./u.test(value)
      ? [[key, templateFrom(value, key, refs)] as const]
      : [],
  );
  const kept = new Set(input.map(([key]) => key));
  own
    .filter(([key]) => !kept.has(key))
    .forEach(([key]) => {
      note(key, `It is a setting of the tool '${name}': set it there.`);
    });
  return {
    component: {
      component_name: 'tool',
      params: { tool: name, input: Object.fromEntries(input), ...handling(conversion) },
      ...links(conversion),
    },
  };
};
