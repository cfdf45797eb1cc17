/** Plain prose, about 700 tokens, written for this check. */
export const passage = `The harbour of the small town lay between two hills, and every morning the boats came
back before the church bell rang seven times. In 1962, Maria Lindqvist counted 143 boats; forty years later there were
only 11. "We did not leave the sea," she used to say, "it left us." Her daughter, who studied chemistry in Uppsala and
later in Turin, never quite believed it. She measured salt, oxygen and temperature at nineteen places along the coast,
twice a month, for eight years. The numbers filled three notebooks: 7.9, 8.1, 8.0, 7.6, and so on, page after page.
What she found was not what the newspapers had printed. The fish had not died; they had moved north, slowly, by about
four kilometres a year, following water that was half a degree colder. A computer program could have drawn the line
through those points in a second:

def line(points):
    n = len(points)
    mean_x = sum(x for x, _ in points) / n
    mean_y = sum(y for _, y in points) / n
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)
    return slope, mean_y - slope * mean_x

But she drew it by hand, with a pencil and a ruler, because the ruler had been her grandfather's. When she was done,
she wrote a letter to the ministry, enclosed a copy of the notebooks, and waited. The answer came after five months. It
thanked her for her interest, explained that the matter was being considered by a committee, and was signed by a person
whose name she could not read. She laughed so loudly that the neighbour's dog began to bark. Then she put on her coat,
walked down to the quay, and asked the last captain whether he would take her along to the north. He looked at the sky
for a long while. "On Thursday," he said, "if the wind turns." The wind turned on Wednesday night; they left at four in
the morning with bread, coffee, two thermometers, a net, and a bottle of something that nobody ever named. On the third
day they found the herring. There were so many that the water looked like hammered silver, and the captain, who had not
cried at his own wedding, took off his cap and held it against his chest. Was it a happy end? Not for the town: its
harbour is a museum now, open from May to September, and children pay half. But the notebooks are kept behind glass, and
under them is a sign in four languages. It says what the ministry finally admitted, nine years too late: that she had
been right, and that the sea does not read newspapers. «Das Meer liest keine Zeitung.» The sign costs 12,50 € to clean.`;
