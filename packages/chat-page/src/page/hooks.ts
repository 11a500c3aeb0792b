import { useEffect, useState } from 'preact/hooks';
import { Observable, throttle } from 'rxjs';

/** The next frame. */
const frame$ = new Observable((subscriber) => {
  const id = requestAnimationFrame((ms) => {
    subscriber.next(ms);
  });
  return () => {
    cancelAnimationFrame(id);
  };
});

/** Renders with the latest value of an Observable, once a frame. Subscribes again when `inputs` change. */
export const useLatest = <T>(
  create$: () => Observable<T>,
  inputs: readonly unknown[],
): T | undefined => {
  const [value, setValue] = useState<{ readonly of: readonly unknown[]; readonly latest: T }>();
  useEffect(() => {
    const subscription = create$()
      .pipe(throttle(() => frame$, { leading: true, trailing: true }))
      .subscribe({
        next: (latest) => {
          setValue({ of: inputs, latest });
        },
        error: reportError,
      });
    return () => {
      subscription.unsubscribe();
    };
  }, inputs);
  return value?.of.every((input, at) => input === inputs[at]) === true ? value.latest : undefined;
};

/** Calls a handler for each event of the window, while the component is shown. */
export const useWindowEvent = <Type extends keyof WindowEventMap>(
  type: Type,
  handle: (event: WindowEventMap[Type]) => void,
): void => {
  useEffect(() => {
    window.addEventListener(type, handle);
    return () => {
      window.removeEventListener(type, handle);
    };
  });
};

/** An id that the server accepts. `crypto.randomUUID` is missing on a page without TLS. */
export const newId = (): string =>
  [...crypto.getRandomValues(new Uint8Array(12))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('');
