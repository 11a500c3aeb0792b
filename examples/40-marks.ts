// Models whose server leaves thoughts and tool calls in the text: each family marks them in its own way.
import { createAgent, only, textOf, tool } from 'millrace';
import { scriptedModel, text } from 'millrace/testing';
import { parseToolCalls } from '@millrace/text-tools';
import { z } from 'zod';

const weather = tool({
  name: 'weather',
  description: 'Returns the weather in a city.',
  input: z.object({ city: z.string(), days: z.number().optional() }),
  run: ({ city, days = 1 }) => `${city}: snow for ${days} days`,
});

// Stands for vllm(…), llamaCpp(…) and the like, on a server without a parser for its model.
const families = {
  'gpt-oss':
    '<|channel|>analysis<|message|>I look.<|end|><|start|>assistant<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{"city": "Oslo", "days": 2}<|call|>',
  GLM: '<think>I look.</think><tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n</tool_call>',
  DeepSeek:
    '<think>I look.</think><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>{"city": "Oslo", "days": 2}<｜tool▁call▁end｜>',
  Llama: '[weather(city="Oslo", days=2)]',
};

for (const [family, reply] of Object.entries(families)) {
  const pieces = reply.match(/[^]{1,6}/gu) ?? [];
  const model = scriptedModel(pieces.map(text), [text('<think>Now I know.</think>Take a coat.')]);
  const agent = createAgent({ model: parseToolCalls(model), tools: [weather] });
  agent.events$
    .pipe(only('postActing'))
    .subscribe(({ result }) => console.log(family, '→', textOf(result)));
  console.log(textOf(await agent.call('Coat or no coat in Oslo?')));
}
