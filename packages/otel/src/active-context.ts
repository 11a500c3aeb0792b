import { type Context, context, type HrTime, type Span } from '@opentelemetry/api';
import { from, Observable, takeUntil } from 'rxjs';

/**
 * Makes a context active while an Observable is created and works, and the outer one while a value is received: the
 * loop continues within the value of a tool or a model. Cold.
 */
export const within$ = <T>(
  inner: Context,
  outer: Context,
  create: () => Observable<T>,
): Observable<T> =>
  new Observable((subscriber) => {
    // Ends a source that emits while it is subscribed to, when its receiver has enough.
    const left$ = new Observable<void>((left) => subscriber.add(() => left.next()));
    return context.with(inner, () =>
      from(create())
        .pipe(takeUntil(left$))
        .subscribe({
          next: (value) => context.with(outer, () => subscriber.next(value)),
          error: (cause: unknown) => context.with(outer, () => subscriber.error(cause)),
          complete: () => context.with(outer, () => subscriber.complete()),
        }),
    );
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
