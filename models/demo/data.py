"""The facts and word lists the demo model is taught. Everything it knows is here.

A country is (name, capital, language, continent); names that take an article carry it.
Only countries with one plain main language and an undisputed capital are listed.
"""

_COUNTRIES = """
Europe: France Paris French; Germany Berlin German; Italy Rome Italian; Spain Madrid Spanish;
Portugal Lisbon Portuguese; the_United_Kingdom London English; Ireland Dublin English;
the_Netherlands Amsterdam Dutch; Austria Vienna German; Greece Athens Greek; Poland Warsaw Polish;
Sweden Stockholm Swedish; Norway Oslo Norwegian; Denmark Copenhagen Danish; Finland Helsinki Finnish;
Iceland Reykjavik Icelandic; Hungary Budapest Hungarian; Romania Bucharest Romanian;
Bulgaria Sofia Bulgarian; Croatia Zagreb Croatian; Serbia Belgrade Serbian; Slovenia Ljubljana Slovene;
Slovakia Bratislava Slovak; Ukraine Kyiv Ukrainian; Russia Moscow Russian; Lithuania Vilnius Lithuanian;
Latvia Riga Latvian; Estonia Tallinn Estonian; Albania Tirana Albanian; Czechia Prague Czech
Asia: Japan Tokyo Japanese; China Beijing Chinese; South_Korea Seoul Korean; Vietnam Hanoi Vietnamese;
Thailand Bangkok Thai; Indonesia Jakarta Indonesian; Turkey Ankara Turkish; Iran Tehran Persian;
Iraq Baghdad Arabic; Syria Damascus Arabic; Jordan Amman Arabic; Lebanon Beirut Arabic;
Mongolia Ulaanbaatar Mongolian; Nepal Kathmandu Nepali; Bangladesh Dhaka Bengali; India New_Delhi Hindi
Africa: Egypt Cairo Arabic; Morocco Rabat Arabic; Algeria Algiers Arabic; Tunisia Tunis Arabic;
Libya Tripoli Arabic; Sudan Khartoum Arabic; Kenya Nairobi Swahili; Ghana Accra English;
Nigeria Abuja English; Senegal Dakar French; Angola Luanda Portuguese; Mozambique Maputo Portuguese;
Zambia Lusaka English; Uganda Kampala English; Somalia Mogadishu Somali
North_America: Canada Ottawa English; the_United_States Washington English; Mexico Mexico_City Spanish;
Cuba Havana Spanish; Jamaica Kingston English
South_America: Brazil Brasilia Portuguese; Argentina Buenos_Aires Spanish; Chile Santiago Spanish;
Peru Lima Spanish; Colombia Bogota Spanish; Venezuela Caracas Spanish; Ecuador Quito Spanish;
Uruguay Montevideo Spanish; Paraguay Asuncion Spanish
Oceania: Australia Canberra English; New_Zealand Wellington English
"""

_CITIES = """
France Lyon Marseille Bordeaux; Germany Munich Hamburg Cologne; Italy Milan Naples Turin;
Spain Barcelona Seville Valencia; Portugal Porto; the_United_Kingdom Manchester Liverpool Edinburgh;
Ireland Cork; the_Netherlands Rotterdam Utrecht; Austria Salzburg Graz; Greece Patras;
Poland Krakow Gdansk; Sweden Gothenburg Malmo; Norway Bergen; Denmark Aarhus; Finland Tampere Turku;
Hungary Debrecen; Romania Timisoara; Bulgaria Varna; Croatia Dubrovnik; Ukraine Lviv Odesa;
Russia Kazan; Czechia Brno; Japan Kyoto Osaka Nagoya; China Shanghai Wuhan; South_Korea Busan;
Thailand Phuket; Indonesia Surabaya; Turkey Istanbul Izmir; Iran Isfahan Shiraz; Iraq Mosul Basra;
Syria Aleppo; India Mumbai Kolkata; Egypt Alexandria Luxor; Morocco Casablanca; Algeria Oran;
Kenya Mombasa; Nigeria Lagos Kano; Canada Toronto Vancouver; the_United_States Chicago Boston Seattle;
Mexico Cancun Monterrey; Brazil Recife; Argentina Rosario; Peru Cusco; Colombia Medellin;
Ecuador Guayaquil; Australia Sydney Melbourne Perth; New_Zealand Auckland
"""


def _countries():
    rows = []
    for block in _COUNTRIES.strip().replace("\n", " ").replace("; ", ";").split(": "):
        rows.append(block)
    out, continent = [], rows[0]
    for i, block in enumerate(rows[1:], 1):
        last = i == len(rows) - 1
        items = block if last else block.rsplit(" ", 1)[0]
        for item in items.split(";"):
            name, capital, language = item.split()
            out.append(tuple(x.replace("_", " ") for x in (name, capital, language, continent)))
        continent = "" if last else block.rsplit(" ", 1)[1]
    return out


def _cities():
    out = {}
    for item in _CITIES.replace("\n", " ").split(";"):
        country, *names = item.split()
        for n in names:
            out[n] = country.replace("_", " ")
    return out


COUNTRIES = _countries()
FACTS = {c[0]: {"capital": c[1], "language": c[2], "continent": c[3]} for c in COUNTRIES}
CITIES = _cities()                                   # city that is no capital -> country
CAPITAL_OF = {c[1]: c[0] for c in COUNTRIES}

# Real places that are never taught: the model must say that it does not know.
# The first list is used in training, the second only in the evaluation.
UNTAUGHT = ("Luxembourg Malta Cyprus Belarus Moldova Montenegro Malaysia Philippines Pakistan Afghanistan "
            "Yemen Oman Qatar Bahrain Kuwait Cambodia Laos Bhutan Ethiopia Rwanda Burundi Malawi Botswana "
            "Namibia Cameroon Gabon Benin Togo Liberia Gambia Guatemala Honduras Nicaragua Panama Haiti").split()
UNTAUGHT_TEST = ("Belgium Switzerland Armenia Georgia Kazakhstan Uzbekistan Myanmar Zimbabwe Madagascar "
                 "Eritrea Lesotho Guinea Bolivia Guyana Suriname Belize Barbados Fiji Samoa Tonga").split()

# More of them, for stage 3: many share their beginning or end with a taught name.
UNTAUGHT_MORE = [n.replace("_", " ") for n in (
    "Andorra Monaco Liechtenstein Bosnia Macedonia Kosovo Azerbaijan Turkmenistan Tajikistan Kyrgyzstan Sri_Lanka "
    "Maldives Singapore Brunei Taiwan Mali Chad Mauritania Congo Djibouti Mauritius Seychelles Comoros Eswatini "
    "Costa_Rica El_Salvador Dominica Grenada Bahamas Trinidad Vanuatu Palau Nauru Kiribati Tuvalu Micronesia "
    "Greenland Puerto_Rico Bermuda Aruba Macau Siberia Texas California Florida Nevada Arizona Montana Oregon "
    "Houston Dallas Denver Miami Detroit Phoenix Atlanta Portland Memphis Orlando Cleveland Philadelphia Montreal "
    "Calgary Quebec Winnipeg Halifax Guadalajara Tijuana Puebla Bristol Leeds Glasgow Cardiff Belfast Birmingham "
    "Newcastle Oxford Cambridge Galway Limerick Nice Toulouse Lille Nantes Strasbourg Grenoble Frankfurt Stuttgart "
    "Dresden Leipzig Bremen Dortmund Florence Venice Palermo Bologna Genoa Verona Malaga Bilbao Zaragoza Granada "
    "Cordoba Coimbra Braga Antwerp Ghent Bruges Brussels Zurich Geneva Basel Lausanne Innsbruck Linz Thessaloniki "
    "Poznan Wroclaw Katowice Uppsala Stavanger Trondheim Odense Espoo Szeged Pecs Cluj Iasi Plovdiv Burgas Kharkiv "
    "Dnipro Samara Omsk Novosibirsk Minsk Yerevan Tbilisi Baku Almaty Tashkent Kabul Karachi Lahore Delhi Chennai "
    "Bangalore Jaipur Osh Hiroshima Sapporo Kobe Fukuoka Yokohama Nanjing Chengdu Shenzhen Tianjin Harbin Incheon "
    "Daegu Saigon Hue Bandung Medan Manila Cebu Rangoon Mandalay Phnom_Penh Dubai Doha Muscat Sanaa Aden Jeddah "
    "Medina Haifa Adana Bursa Konya Tabriz Kirkuk Homs Zarqa Giza Aswan Fez Tangier Agadir Constantine Sfax Benghazi "
    "Kisumu Kumasi Ibadan Kaduna Thies Lobito Beira Ndola Gulu Harare Bulawayo Lilongwe Gaborone Windhoek Addis_Ababa "
    "Kigali Bamako Niamey Libreville Durban Pretoria Santos Salvador Fortaleza Curitiba Manaus Mendoza Cordova Salta "
    "Valparaiso Concepcion Arequipa Trujillo Cali Cartagena Maracaibo Cuenca Salto Encarnacion Darwin Brisbane Hobart "
    "Adelaide Hamilton Dunedin Christchurch Atlantis Narnia Mars Venus Jupiter Neptune").split()]

NAMES = ("Mary John Alice Bob Emma James Anna Peter Laura David Sarah Paul Julia Mark Helen Tom Lucy Simon "
         "Grace Henry Clara Oscar Nina Victor Ruth George Diana Frank Ella Martin Rosa Adam Irene Hugo "
         "Sophie Leo Kate Max Eva Sam").split()
PLACES = "store park school market library beach station garden museum office kitchen cafe".split()
OBJECTS = "drink book ball letter key gift map ticket ring coin flower cup".split()

POSITIVE = ("good great wonderful excellent brilliant lovely amazing fantastic superb delightful pleasant "
            "charming beautiful perfect enjoyable impressive").split()
NEGATIVE = ("bad terrible awful horrible boring dull poor dreadful ugly disappointing weak annoying "
            "unpleasant tedious messy lousy").split()
NOUNS = "movie film book food service story acting music hotel room game show meal trip concert play".split()

OPPOSITES = [p.split("/") for p in (
    "hot/cold big/small high/low fast/slow open/closed light/dark young/old rich/poor early/late "
    "long/short wet/dry full/empty hard/soft strong/weak near/far happy/sad clean/dirty up/down "
    "left/right day/night black/white first/last").split()]
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = ("January February March April May June July August September October November December").split()

WORDS = ("apple river stone table window green blue cloud horse lamp paper tree house road bird fish glass "
         "silver gold bridge mountain forest ocean winter summer bread milk sugar salt pepper chair door "
         "clock piano guitar pencil bottle basket candle mirror ladder hammer button pocket circle square "
         "tiger lion wolf bear eagle mouse sheep goat duck frog snake whale ship train plane car wheel "
         "engine coat shirt shoe hat glove ring crown sword shield castle tower wall field farm hill lake").split()

# Questions about things the model was never taught; {x} is filled with a noun or a name.
UNKNOWN_ASK = (
    "Who wrote {x}?|How tall is the {x}?|How old is {x}?|Why is the {x} blue?|When was {x} born?|"
    "How many {x}s are there?|What is the price of a {x}?|How do I cook {x}?|Who is the president of {x}?|"
    "What is the population of {x}?|How far is {x} from here?|Who invented the {x}?|"
    "Can you write a poem about {x}?|Write a story about a {x}.|What is the meaning of {x}?|"
    "What is the weather in {x}?|How does a {x} work?|What is {n} plus {m}?|What is {n} times {m}?|"
    "Who won the game in {n}?|What is the currency of {x}?|How do you spell {x}?|Is {x} bigger than {y}?|"
    "What is the largest {x} in the world?|Where can I buy a {x}?|Tell me a joke about {x}.|"
    "Translate {x} to {y}.|What is a {x}?|Explain {x} to me.|What color is the {x}?|Who is {x}?|"
    "What happened in {n}?|Which {x} is the best?|Should I buy a {x}?|Do you like {x}?|"
    "What time is it in {x}?|How many people live in {x}?|What is the history of {x}?").split("|")
# More kinds for stage 3, most of them about places the model does know: {a} is something it was not told of them.
UNKNOWN_ATTRIBUTE = ("mayor leader president minister river mountain lake island anthem area size age religion dish "
                     "soup animal bird flower sport team airport street museum university climate weather population "
                     "currency history economy army law poet painter singer saint motto colour number name").split()
UNKNOWN_ASK_MORE = (
    "What is the {a} of {x}?|Tell me the {a} of {x}.|{x}'s {a}?|Name the {a} of {x}.|What's the {a} of {x}?|"
    "Do you know the {a} of {x}?|{a} of {x}?|Which {a} is in {x}?|I would like to know the {a} of {x}.|"
    "Can you tell me what the {a} of {x} is?|Who is the {a} of {x}?|How big is the {a} of {x}?|"
    "Why is {x} famous?|Why did {x} lose?|Who built {x}?|Who lives in {x}?|Who founded {x}?|Who owns the {x}?|"
    "How old is {x}?|How big is {x}?|How cold is {x}?|How rich is {x}?|How did {x} begin?|How can I get to {x}?|"
    "When was {x} founded?|When does {x} open?|When will {x} end?|When is the best time to see {x}?|"
    "What should I eat in {x}?|What do people wear in {x}?|What do people eat in {x}?|What can I see in {x}?|"
    "What does {x} mean?|What does {x} cost?|What did {x} say?|What makes {x} special?|What is inside the {x}?|"
    "Is {x} beautiful?|Is it safe in {x}?|Was {x} ever at war?|Does it rain in {x}?|Has {x} won?|Will {x} win?|"
    "Did you see {x}?|Are there {y}s in {x}?|Can I live in {x}?|Have you been to {x}?|Should I move to {x}?|"
    "Where did {x} go?|Where does the {x} come from?|Where is the {a} of {x}?|Which {y} did {x} buy?|"
    "Draw a {x}.|Paint {x} for me.|Sing about {x}.|Summarize {x}.|Compare {x} and {y}.|List ten {x}s.|"
    "Describe {x}.|Is {n} a prime number?|Count to {n}.|What is half of {n}?|Add {n} and {m}.|"
    "Divide {n} by {m}.|What day was it in {n}?|Convert {n} to {m}.|Is {n} more than {m}?").split("|")
UNKNOWN_ASK_TEST = (
    "Who painted the {x}?|How heavy is a {x}?|What is the square root of {n}?|Who discovered the {x}?|"
    "Why do people like {x}?|What is the flag of {x}?|How long is the {x}?|When did {x} die?|"
    "Write code for a {x}.|What is the king of {x} called?|How many legs has a {x}?|"
    "What is {n} minus {m}?").split("|")
