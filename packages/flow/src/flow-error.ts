import { isMillraceError, MillraceError } from 'millrace';
import { defined, messageOf } from 'millrace/values';

/** The error of a flow whose component failed without `on_error`. Its `code` is that of the component's error. */
export class FlowError extends MillraceError {
  /** The ID of the component that failed. */
  readonly component: string;

  constructor(component: string, message: string, cause: MillraceError, original: unknown) {
    const { code, retryable, userMessage, partial, retryAfterMs, status, requestId, over } = cause;
    const details = defined({ partial, retryAfterMs, status, requestId, over });
    super(code, message, { cause: original, retryable, userMessage, ...details });
    this.component = component;
  }
}

/** The error of a component. Inside an iteration or a loop, its `component` is the innermost one. */
export const flowErrorOf = (id: string, cause: unknown): FlowError => {
  const error = toError(cause);
  const component = error instanceof FlowError ? error.component : id;
  return new FlowError(component, `In the component '${id}': ${error.message}`, error, cause);
};

export const toError = (cause: unknown): MillraceError =>
  isMillraceError(cause)
    ? cause
    : new MillraceError('unknown', messageOf(cause), {
        cause,
      });
