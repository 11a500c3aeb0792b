import { type Attributes, type Span, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { type Layer, type Context, type Perform, type Step, toolResultOf } from 'millrace';
import { isRecord } from 'millrace/values';
import { defer, finalize, type Observable, tap } from 'rxjs';
import { standIn, timeOf, within$ } from './active-context.js';
import { errorTypeOf, fail, startSpan, stepKey, withinStep } from './call-span.js';
import { redacted, toJson, toParts } from './content.js';
import { keys, operations } from './conventions.js';
import type { TracedCall, Tracing } from './settings.js';

/** Traces the tools that run. Tools that are denied, or whose results are replayed, make no spans. */
export const traceTools =
  (tracing: Tracing): NonNullable<Layer['step']> =>
  (context) =>
  (next) => {
    const performed: Perform = (step) => {
      const { current } = context.local(tracing.traced);
      if (current === undefined || step.kind === 'wait') return next(step);
      current.queue.stop();
      return step.kind === 'tool'
        ? defer(() => toolStep$(tracing, context, current, next, step))
        : next(step);
    };
    return performed;
  };

const toolStep$ = <T>(
  { parents }: Tracing,
  { info: call, local }: Context,
  traced: TracedCall,
  next: Perform,
  step: Step<T>,
): Observable<T> => {
  const run = createToolRun(traced, step);
  const key = stepKey(call.callId, step.id);
  const running = local(parents);
  const { cut: early$ } = step;
  const cut$: Step<T>['cut'] =
    early$ &&
    ((why) => {
      run.cutBy(why.reason);
      return early$(why);
    });
  const run$ = (attempt: number): Observable<T> =>
    defer(() => {
      run.begin();
      const inner = run.context.setValue(withinStep, key);
      running.set(key, inner);
      const work$ = () => step.run(attempt);
      return traced.isActive ? within$(inner, traced.outer, work$) : work$();
    });
  return next({ ...step, run: run$, ...(cut$ && { cut: cut$ }) }).pipe(
    tap({
      next: (value) => run.end(toolResultOf(step, value)),
      error: run.fail,
      unsubscribe: () => run.cutBy('unsubscribed'),
    }),
    finalize(() => {
      run.end(undefined);
      running.delete(key);
    }),
  );
};

/**
 * The span of a tool step. It is created when something needs it, with the time at which the tool began: whether the
 * tool was executed is only known at the end.
 */
const createToolRun = (traced: TracedCall, { id, input }: Pick<Step<unknown>, 'id' | 'input'>) => {
  const { redact, instruments, agentName, context, now } = traced;
  const attributes = toolAttributes(traced, id, input);
  let startedAt: number | undefined;
  let span: Span | undefined;
  let cut: string | undefined;
  let isOver = false;
  const current = (): Span =>
    (span ??= startSpan(
      traced,
      `${operations.tool} ${String(attributes[keys.toolName])}`,
      SpanKind.INTERNAL,
      startedAt ?? now(),
      attributes,
      context,
    ));
  const finish = (errorType?: string): void => {
    if (startedAt === undefined || isOver) return;
    isOver = true;
    const endedAt = now();
    if (cut !== undefined) current().setAttribute(keys.cut, cut);
    current().end(timeOf(endedAt));
    const measured = {
      [keys.toolName]: attributes[keys.toolName],
      [keys.toolType]: 'function',
      [keys.agentName]: agentName,
    };
    const own = trace.setSpan(context, current());
    instruments?.end('tool', endedAt - startedAt, measured, errorType, own);
  };
  return {
    context: trace.setSpan(context, standIn(current)),
    begin: (): void => void (startedAt ??= now()),
    cutBy: (reason: string): void => void (cut ??= reason),
    fail: (cause: unknown): void => {
      if (startedAt !== undefined) fail(current(), cause, redact);
      finish(errorTypeOf(cause));
    },
    end: (given: ReturnType<typeof toolResultOf>): void => {
      // A tool that was not executed has no span, unless it was needed.
      if (startedAt === undefined || isOver || (given?.executed === false && span === undefined)) {
        isOver = true;
        return;
      }
      if (given === undefined) {
        finish();
        return;
      }
      const { isError, suspended, content } = given.result;
      const hasFailed = isError && suspended === undefined && cut === undefined;
      current().setAttributes({
        ...(suspended !== undefined && { [keys.suspended]: true }),
        ...(hasFailed && { [keys.errorType]: 'tool' }),
        ...(redact !== undefined && { [keys.toolResult]: toJson(() => toParts(content, redact)) }),
      });
      if (hasFailed) current().setStatus({ code: SpanStatusCode.ERROR });
      finish(hasFailed ? 'tool' : undefined);
    },
  };
};

const toolAttributes = (
  { shared, agentName, redact }: TracedCall,
  stepId: string,
  toolCall: unknown,
): Attributes => {
  const { name, id, input } = isRecord(toolCall) ? toolCall : {};
  return {
    ...shared,
    [keys.operation]: operations.tool,
    [keys.toolName]: String(name),
    [keys.toolCallId]: String(id),
    [keys.toolType]: 'function',
    [keys.agentName]: agentName,
    [keys.step]: stepId,
    ...(redact !== undefined && { [keys.toolArguments]: toJson(() => redacted(input, redact)) }),
  };
};
