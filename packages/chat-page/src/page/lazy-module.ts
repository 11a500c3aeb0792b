import { useEffect, useState } from 'preact/hooks';

/** Returns a hook for a module that few answers need: it is loaded when one does, and undefined until then. */
export const lazyModule = <Module>(load: () => Promise<Module>) => {
  let module: Module | undefined;
  return (isNeeded: boolean): Module | undefined => {
    const [, setModule] = useState(module);
    useEffect(() => {
      if (!isNeeded || module !== undefined) return undefined;
      let isShown = true;
      load().then(
        (loaded) => {
          module = loaded;
          if (isShown) setModule(loaded);
        },
        // Without a connection, its text stays as it is.
        () => undefined,
      );
      return () => {
        isShown = false;
      };
    }, [isNeeded]);
    return isNeeded ? module : undefined;
  };
};
