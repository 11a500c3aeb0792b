import { type Context, context, type HrTime, type Span } from '@opentelemetry/api';
import { type MonoTypeOperatorFunction, Observable, Subscriber } from 'rxjs';

/**
 * Makes a context active while a source works, and the outer one while a value is received: the loop continues within
 * the value of a tool or a model.
 */
export const within =
  <T>(inner: Context, outer: Context): MonoTypeOperatorFunction<T> =>
  (source) =>
    new Observable((subscriber) => {
      // eslint-disable-next-line @typescript-eslint/no-deprecated -- Only a subscriber can unsubscribe during `subscribe`.
      const received = new Subscriber<T>({
        next: (value: T) => context.with(outer, () => subscriber.next(value)),
        error: (cause: unknown) => context.with(outer, () => subscriber.error(cause)),
        complete: () => context.with(outer, () => subscriber.complete()),
      });
      subscriber.add(received);
      context.with(inner, () => source.subscribe(received));
    });

/** Milliseconds of a scheduler as a time of OpenTelemetry, which takes small numbers for times since the process began. */
export const timeOf = (ms: number): HrTime => {
  const seconds = Math.floor(ms / 1_000);
  return [seconds, Math.round((ms - seconds * 1_000) * 1e6)];
};

/**
 * A span that stands for the one that is current whenever it is used, such as that of the latest attempt of a request.
 * Ending it does nothing: the current one has an owner.
 */
export const standIn = (current: () => Span): Span => {
  const span: Span = {
    spanContext: () => current().spanContext(),
    isRecording: () => current().isRecording(),
    end: () => undefined,
    recordException: (exception, time) => current().recordException(exception, time),
    setAttribute: (key, value) => (current().setAttribute(key, value), span),
    setAttributes: (attributes) => (current().setAttributes(attributes), span),
    addEvent: (name, attributes, time) => (current().addEvent(name, attributes, time), span),
    addLink: (link) => (current().addLink(link), span),
    addLinks: (links) => (current().addLinks(links), span),
    setStatus: (status) => (current().setStatus(status), span),
    updateName: (name) => (current().updateName(name), span),
  };
  return span;
};
