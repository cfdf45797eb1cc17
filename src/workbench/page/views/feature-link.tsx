import { select } from "../router.js";

/** A feature's number, which opens its card. */
export function FeatureLink({ feature }: { feature: number }) {
  return (
    <a
      href={`?f=${feature}`}
      onClick={(event) => {
        event.preventDefault();
        select({ f: feature });
      }}
    >
      {feature}
    </a>
  );
}
