import { defer, map, type MonoTypeOperatorFunction } from 'rxjs';
import type { Model, ModelChunk, ModelRequest, ToolChoice } from './model.js';
import { createToolParts, type ToolCallChunk, written } from './tool-parts.js';
import { meantName } from '../values/meant-name.js';
import { aroundModel } from './around-model.js';
import { checkModel, inTime } from './timeouts.js';

/** Wraps a model so that it enforces timeouts and supports `outputSchema`. */
export const ready = (model: Model): Model =>
  inTime(model.unsupported?.includes('outputSchema') === true ? answerTool(model) : model);

/**
 * Adds a tool to answer with for a model without native structured output: its input is the `outputSchema`, and its
 * arguments are streamed as the text of the answer. Omitted if a request forces another tool.
 */
export const answerTool = (model: Model): Model => {
  checkModel('answerTool()', model);
  const takesChoice = model.unsupported?.includes('toolChoice') !== true;
  return aroundModel(
    model,
    ({ outputSchema, ...request }, context) => {
      const { tools = [], toolChoice } = request;
      if (outputSchema === undefined || forces(toolChoice)) return model.stream$(request, context);
      const name = freeName(tools.map((tool) => tool.name));
      const choice: ToolChoice = toolChoice === 'none' ? { name } : 'required';
      const asked: ModelRequest = {
        ...request,
        tools: [...tools, { name, description, inputSchema: outputSchema }],
        ...(takesChoice ? { toolChoice: choice } : {}),
      };
      return defer(() => model.stream$(asked, context)).pipe(asText(name));
    },
    { unsupported: (model.unsupported ?? []).filter((option) => option !== 'outputSchema') },
  );
};

const description = 'Gives the final answer, and so ends the task. Use it once, at the end.';

const forces = (choice: ToolChoice | undefined): boolean =>
  choice === 'required' || typeof choice === 'object';

const freeName = (taken: readonly string[], count = 1): string => {
  const name = count === 1 ? 'final_answer' : `final_answer_${count}`;
  return taken.includes(name) ? freeName(taken, count + 1) : name;
};

const asText =
  (name: string): MonoTypeOperatorFunction<ModelChunk> =>
  (source) =>
    defer(() => {
      const parts = createToolParts(0, () => false);
      let attempt = 1;
      let hasText = false;
      const spoken = (chunk: ToolCallChunk): ModelChunk => {
        const { part, isNew } = parts.add(chunk, attempt);
        if (meantName(part.name, (it) => it === name) !== name) return chunk;
        const json = chunk.json ?? (chunk.input === undefined ? '' : written(chunk.input));
        const gap = isNew && hasText ? '\n\n' : '';
        hasText = true;
        return { type: 'text', text: `${gap}${json}` };
      };
      return source.pipe(
        map((chunk) => {
          if (chunk.type === 'toolCall') return spoken(chunk);
          if (chunk.type === 'text') hasText ||= chunk.text !== '';
          if (chunk.type === 'restart') {
            attempt += 1;
            hasText = false;
          }
          return chunk;
        }),
      );
    });
