import { type Call, type LoopCall, answerForm, loopToolkit } from '../seams/call.js';
import type { Context } from '../seams/layer.js';
import { limitsOf } from '../flow/deadline.js';
import { misuse } from '../values/errors.js';
import { inTime } from '../models/timeouts.js';
import { refuseUnknownChoice, assertReady, refuseMisspelt } from '../tools/toolkit.js';
import { systemPrompt, textFound } from '../models/prompt.js';
import { fixedLength, instructionsOf } from './instructions.js';
import { requestOf } from './call-options.js';
import { supportedOptions, withTools, dropWarning } from '../models/request-options.js';
import { type Message, toolCallsOf } from '../values/message.js';

/** The call as phases get it: with its limits, the model ready to be asked, and the request as that model supports it. */
export const loopCall = (call: Call, context: Context): LoopCall => {
  const { info, hooks, local } = context;
  const { model: plain, options, instructions, toolkit } = call;
  const limits = limitsOf(options.limits);
  if (plain === undefined)
    throw misuse(`The loop of the agent '${info.agent.at(-1) ?? ''}' needs a model.`);
  const { required } = local(answerForm);
  // `ready` keeps time, too.
  const model = required?.ready(plain) ?? inTime(plain);
  local(loopToolkit).own = toolkit;
  refuseUnknownChoice(options.request?.toolChoice, toolkit.current);
  assertReady(toolkit.current, { ...context, values: call.values });
  if (limits.timeouts.tools) refuseMisspelt(limits.timeouts.tools, toolkit.current);
  const system = systemPrompt({ instructions, context: textFound(call.found, 'system') });
  const fixedSystem = fixedLength(local(instructionsOf).own, system);
  const own = requestOf(options.request, { system, fixedSystem }, required?.jsonSchema);
  // Each request adds the tools of its turn: here they only show what is dropped beside tools.
  const { dropped } = supportedOptions(model, withTools(own, toolkit.current));
  const { options: request } = supportedOptions(model, own);
  dropped.forEach((option) => hooks.report(0, dropWarning(model, option)));
  toolkit.current.warnings.forEach((message) => hooks.report(0, { type: 'warning', message }));
  return { ...call, model, request, limits };
};

export const toolCallIdsOf = (messages: readonly Message[]): readonly string[] =>
  messages.flatMap((message) =>
    message.role === 'assistant' ? toolCallsOf(message).map(({ id }) => id) : [],
  );
