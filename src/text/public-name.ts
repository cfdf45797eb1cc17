/** A model or place as others may read it: the folders that it lies in tell of a machine and its user. A hub id stays. */
export function publicName(place: string): string {
  if (!/^(?:[/\\~.]|[A-Za-z]:[/\\])/.test(place)) return place;
  return place.split(/[/\\]/).findLast((part) => part !== "") ?? "a model";
}
