import type { Tool } from '@millrace/core';
import { defer, map } from 'rxjs';
import type { ToolParams } from '../document.js';
import { fillRecord } from '../render.js';
import { toResult, textOutput, type Work } from '../work.js';
import { runOnce$ } from './run-once.js';

/** Runs a tool with input from templates, which is validated like the input of a model. */
export const toolWork =
  (id: string, { input = {} }: ToolParams, tool: Tool): Work =>
  (scope) =>
    defer(() => runOnce$(id, tool, fillRecord(input, scope), scope)).pipe(
      map((reply) => toResult(reply, ({ output: _details, ...answer }) => textOutput(answer))),
    );
