/** mathjs publishes this file without types. */
declare module 'mathjs/lib/browser/math.js' {
  import type { ConfigOptions, MathJsInstance } from 'mathjs';

  interface BigNumberClass {
    set(options: {
      precision?: number | undefined;
      maxE?: number | undefined;
      minE?: number | undefined;
    }): unknown;
  }

  const bundle: {
    create(config: ConfigOptions): MathJsInstance & { readonly BigNumber: BigNumberClass };
  };
  export = bundle;
}
