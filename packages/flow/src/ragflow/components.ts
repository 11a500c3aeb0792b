import { isRecord } from 'millrace/values';
import { type Params, recordIn, recordsIn, textIn, textsIn } from './canvas.js';
import {
  type Converted,
  type Conversion,
  isSet,
  numberOf,
  within,
  noteParams,
  handling,
  modelOf,
  links,
  toolName,
  templateFrom,
  conditionFrom,
  asText,
} from './conversion.js';
import { convertIteration, convertLoop, convertExit } from './repetition.js';
import { convertAssigner, convertAggregator, convertTransform } from './assignments.js';
import { convertForm, convertInvoke, convertCode, convertTool } from './outside.js';

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
  const { structured } = recordIn(outputs);
  if (!isRecord(structured)) return undefined;
  const schema = isRecord(structured['value']) ? structured['value'] : structured;
  return schema['type'] === 'object' && isSet(schema['properties']) ? schema : undefined;
};

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

const convertCategorize = (conversion: Conversion): Converted => {
  const { it, refs, idsOf } = conversion;
  const { params } = it;
  const given = recordIn(params['category_description']);
  const categories = Object.entries(given).map(([name, category]) => {
    const { description, examples, to } = recordIn(category);
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
